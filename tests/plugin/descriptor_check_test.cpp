// SPDX-License-Identifier: MIT
//
// What a descriptor must not show: tables that cannot be walked, texts that are no text.
#include "core/plugin/descriptor_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/abi/ciuic.h>
#include <ciuic/view.hpp>

#include "core/plugin/array_problem.h"

namespace ciuic::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct DescriptorCheck : ::testing::Test {
  DescriptorCheck() {
    table.struct_size = sizeof(table);
    table.mask = [](ciuic_instance*) { return uint64_t{0}; };
    table.emit = [](ciuic_instance*, ciuic_array) {};
    table.flush = [](ciuic_instance*, int64_t) { return static_cast<ciuic_status*>(nullptr); };
    d.struct_size = sizeof(d);
    d.abi_major = CIUIC_ABI_MAJOR;
    d.abi_minor = CIUIC_ABI_MINOR;
    d.kind = CIUIC_KIND_PROFILER;
    d.name = "tables";
    d.version = "1.0.0";
    d.license = "MIT";
    d.summary = "a test";
    d.vt = &table;
    d.create = [](const ciuic_create_args*, ciuic_instance**) {
      return static_cast<ciuic_status*>(nullptr);
    };
    d.destroy = [](ciuic_instance*) {};
    for (size_t i = 0; i < 2; ++i) {
      specs[i].struct_size = sizeof(ciuic_option_spec);
      specs[i].type = CIUIC_TYPE_LIST_I64;
      specs[i].key = i == 0 ? "first" : "second";
      specs[i].doc = "a list";
    }
    d.options = {specs, 2, sizeof(ciuic_option_spec)};
  }
  ciuic_profiler_vt table{};
  ciuic_option_spec specs[2]{};
  ciuic_descriptor d{};
};

TEST_F(DescriptorCheck, ASoundOneHasNoProblem) { EXPECT_EQ(descriptor_problem(d), ""); }

TEST_F(DescriptorCheck, AnOptionTableHasAStride) {
  for (const uint32_t stride :
       {0u, 1u, uint32_t{sizeof(ciuic_option_spec)} - 8, uint32_t{sizeof(ciuic_option_spec)} + 1}) {
    d.options.stride = stride;
    EXPECT_THAT(descriptor_problem(d),
                AllOf(HasSubstr("option table"), HasSubstr("stride of " + std::to_string(stride))));
  }
}

TEST_F(DescriptorCheck, AnOptionHasItsSize) {
  for (const uint32_t size : {0u, 8u, uint32_t{sizeof(ciuic_option_spec)} + 8}) {
    specs[1].struct_size = size;
    EXPECT_THAT(descriptor_problem(d),
                AllOf(HasSubstr("element 1"), HasSubstr("struct_size of " + std::to_string(size))));
  }
}

TEST_F(DescriptorCheck, ATableThatIsNotThere) {
  d.options.base = nullptr;
  EXPECT_THAT(descriptor_problem(d), HasSubstr("option table is NULL"));
}

TEST_F(DescriptorCheck, ADefaultListHasAStride) {
  const int64_t values[2]{1, 2};
  specs[0].def.list = {values, 2, sizeof(int64_t)};
  EXPECT_EQ(descriptor_problem(d), "");
  specs[0].def.list.stride = 0;
  EXPECT_THAT(descriptor_problem(d), AllOf(HasSubstr("first"), HasSubstr("stride of 0")));
}

TEST_F(DescriptorCheck, TextsHaveNoControlCharacters) {
  d.summary = "\x1b[2J";
  EXPECT_THAT(descriptor_problem(d), AllOf(HasSubstr("summary"), HasSubstr("\\x1b[2J")));
  d.summary = "sound";
  specs[1].doc = "two\nlines";
  EXPECT_THAT(descriptor_problem(d), HasSubstr("option second"));
}

TEST(ArrayProblem, FrozenElementsHaveNoSizeOfTheirOwn) {
  const ciuic_batch_item items[2]{};
  EXPECT_EQ(array_problem<ciuic_batch_item>({items, 2, sizeof(items[0])}, "it"), "");
  EXPECT_THAT(array_problem<ciuic_batch_item>({items, 2, 0}, "it"), HasSubstr("stride of 0"));
  EXPECT_EQ(array_problem<ciuic_batch_item>({nullptr, 0, 0}, "it"), "") << "nothing is nothing";
}

}  // namespace
}  // namespace ciuic::core
