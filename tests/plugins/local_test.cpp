// SPDX-License-Identifier: MIT
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins.h"

namespace ciuic::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Local : public ::testing::Test {
 protected:
  void submit(const ciuic_collective& c) const {
    ciuic_work* work = nullptr;
    const auto& vt = local.table<ciuic_communicator_vt>();
    local.check(vt.submit(local.self(), {&c, 1, sizeof(c)}, nullptr, &work));
    EXPECT_EQ(work, nullptr) << "done already";
  }
  static ciuic_collective collective(uint32_t op, const Tensor* in, const Tensor* out,
                                     uint32_t reduce = 0) {
    ciuic_collective c{};
    c.struct_size = sizeof(c);
    c.op = op;
    c.reduce = reduce;
    c.in = in == nullptr ? nullptr : in->ptr();
    c.out = out == nullptr ? nullptr : out->ptr();
    return c;
  }
  uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype) const {
    uint64_t bits = 0;
    local.check(local.table<ciuic_communicator_vt>().capabilities(local.self(), op, reduce, dtype,
                                                                  {CIUIC_DEVICE_CPU, 0}, &bits));
    return bits;
  }

  TestHost host;
  LoadedPlugin plugin = load_plugin("local");
  PluginInstance local = plugin.create(host);
};

TEST_F(Local, RefusesMoreThanOneRank) {
  const Error e = error_of([&] { plugin.validate(host, {}, {0, 2, {}}); });
  EXPECT_EQ(e.code(), CIUIC_INVALID);
  EXPECT_STREQ(
      e.what(),
      "communicator local serves one rank, got world=2; set communicator.plugin = \"auto\"");
  EXPECT_EQ(error_of([&] { (void)plugin.create(host, {}, {1, 2, {}}); }).code(), CIUIC_INVALID);
}

TEST_F(Local, CollectivesAreCopies) {
  for (const uint32_t op :
       {CIUIC_OP_ALL_REDUCE, CIUIC_OP_REDUCE, CIUIC_OP_REDUCE_SCATTER, CIUIC_OP_ALL_GATHER,
        CIUIC_OP_GATHER, CIUIC_OP_SCATTER, CIUIC_OP_ALL_TO_ALL}) {
    std::vector<int64_t> from{1, -2, 3};
    std::vector<int64_t> to{0, 0, 0};
    const Tensor in(from.data(), kI64, {3});
    const Tensor out(to.data(), kI64, {3});
    submit(collective(op, &in, &out, CIUIC_REDUCE_AVG));
    EXPECT_THAT(to, ElementsAre(1, -2, 3)) << op;
  }
}

TEST_F(Local, WorksInPlaceAndWithoutTensors) {
  std::vector<float> values{1, 2};
  const Tensor t(values.data(), kF32, {2});
  submit(collective(CIUIC_OP_ALL_REDUCE, &t, &t, CIUIC_REDUCE_SUM));
  submit(collective(CIUIC_OP_BROADCAST, nullptr, &t));
  submit(collective(CIUIC_OP_BARRIER, nullptr, nullptr));
  EXPECT_THAT(values, ElementsAre(1, 2));
}

TEST_F(Local, TellsTheTruthAboutTypes) {
  const ciuic_dtype fp8{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1};
  const ciuic_dtype int4{CIUIC_DTYPE_INT, 4, 1};
  for (const ciuic_dtype dtype : {kF32, kBF16, kI64, kU8}) {
    EXPECT_NE(capabilities(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_AVG, dtype), 0U);
  }
  EXPECT_EQ(capabilities(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, fp8), 0U);
  EXPECT_EQ(capabilities(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_OR, kF32), 0U);
  EXPECT_EQ(capabilities(CIUIC_OP_ALL_REDUCE, 0, kF32), 0U);
  EXPECT_NE(capabilities(CIUIC_OP_ALL_GATHER, 0, fp8) & CIUIC_COMM_UNEVEN, 0U);
  EXPECT_EQ(capabilities(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, kF32) & CIUIC_COMM_UNEVEN, 0U);
  EXPECT_EQ(capabilities(CIUIC_OP_SEND, 0, int4), 0U);
  EXPECT_EQ(capabilities(12, 0, kF32), 0U);
}

TEST_F(Local, WhatCapabilitiesDenyIsRefused) {
  char memory[64] = {};
  int refused = 0;
  for (uint32_t op = 1; op < CIUIC_OP_BARRIER; ++op) {
    for (uint32_t reduce = 0; reduce <= 8; ++reduce) {
      for (const ciuic_dtype dtype : {kF32, kI64, ciuic_dtype{CIUIC_DTYPE_INT, 4, 1},
                                      ciuic_dtype{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1}}) {
        const Tensor t(memory, dtype, {4});
        if (capabilities(op, reduce, dtype) == 0) {
          ++refused;
          EXPECT_EQ(error_of([&] { submit(collective(op, &t, &t, reduce)); }).code(),
                    CIUIC_UNIMPLEMENTED)
              << op << " " << reduce << " " << dtype_name(dtype);
        }
      }
    }
  }
  EXPECT_GT(refused, 40);
  const Tensor t(memory, kF32, {4});
  ciuic_collective scaled = collective(CIUIC_OP_ALL_REDUCE, &t, &t, CIUIC_REDUCE_SUM);
  scaled.factor = 0.5;
  EXPECT_EQ(error_of([&] { submit(scaled); }).code(), CIUIC_UNIMPLEMENTED);
}

TEST_F(Local, CountsAndOffsetsPlaceTheOnePart) {
  std::vector<int32_t> from{1, 2, 3, 4, 5};
  std::vector<int32_t> to{0, 0, 0, 0};
  const Tensor in(from.data(), kI32, {5});
  const Tensor out(to.data(), kI32, {4});
  const int64_t count = 2;
  const int64_t in_offset = 3;
  const int64_t out_offset = 1;
  ciuic_collective c = collective(CIUIC_OP_ALL_TO_ALL, &in, &out);
  c.in_counts = &count;
  c.in_offsets = &in_offset;
  c.out_counts = &count;
  c.out_offsets = &out_offset;
  submit(c);
  EXPECT_THAT(to, ElementsAre(0, 4, 5, 0));
  const int64_t none = 0;
  c.in_counts = c.out_counts = &none;
  submit(c);
  EXPECT_THAT(to, ElementsAre(0, 4, 5, 0)) << "a part may be empty";
  const int64_t far = 4;
  c.in_counts = c.out_counts = &count;
  c.in_offsets = &far;
  EXPECT_EQ(error_of([&] { submit(c); }).code(), CIUIC_INVALID);
  ciuic_collective whole = collective(CIUIC_OP_ALL_REDUCE, &in, &in, CIUIC_REDUCE_SUM);
  whole.in_counts = &count;
  EXPECT_EQ(error_of([&] { submit(whole); }).code(), CIUIC_INVALID);
}

TEST_F(Local, MessageToOneselfIsACopy) {
  std::vector<float> from{1, 2};
  std::vector<float> to{0, 0};
  const Tensor in(from.data(), kF32, {2});
  const Tensor out(to.data(), kF32, {2});
  std::vector<ciuic_collective> both{collective(CIUIC_OP_RECV, nullptr, &out),
                                     collective(CIUIC_OP_SEND, &in, nullptr)};
  const auto submit_both = [&] {
    ciuic_work* work = nullptr;
    local.check(
        local.table<ciuic_communicator_vt>().submit(local.self(), to_array(both), nullptr, &work));
  };
  submit_both();
  EXPECT_THAT(to, ElementsAre(1, 2));
  both[0].tag = 1;
  EXPECT_EQ(error_of(submit_both).code(), CIUIC_INVALID) << "tags differ";
  EXPECT_EQ(error_of([&] { submit(both[1]); }).code(), CIUIC_INVALID) << "half a message";
  both[1].peer = 1;
  EXPECT_EQ(error_of([&] { submit(both[1]); }).code(), CIUIC_INVALID) << "nobody there";
}

TEST_F(Local, RefusesWhatIsMissing) {
  std::vector<float> values{1};
  const Tensor t(values.data(), kF32, {1});
  EXPECT_THAT(error_of([&] {
                submit(collective(CIUIC_OP_ALL_REDUCE, nullptr, &t, CIUIC_REDUCE_SUM));
              }).what(),
              HasSubstr("in is missing"));
}

TEST_F(Local, RefusesDifferentSizes) {
  std::vector<float> values{1, 2, 3};
  const Tensor in(values.data(), kF32, {3});
  const Tensor out(values.data(), kF32, {2});
  const Error e =
      error_of([&] { submit(collective(CIUIC_OP_ALL_REDUCE, &in, &out, CIUIC_REDUCE_SUM)); });
  EXPECT_THAT(e.what(), HasSubstr("got 3 f32 in and 2 f32 out"));
}

TEST_F(Local, SplitsIntoItself) {
  const auto& vt = local.table<ciuic_communicator_vt>();
  const int32_t self = 0;
  ciuic_split request{};
  request.struct_size = sizeof(request);
  request.ranks = &self;
  request.count = 1;
  ciuic_instance* child = nullptr;
  local.check(vt.split(local.self(), &request, &child));
  ASSERT_NE(child, nullptr);
  plugin.descriptor().destroy(child);
  request.count = 0;
  local.check(vt.split(local.self(), &request, &child));
  EXPECT_EQ(child, nullptr);
}

TEST_F(Local, FailsAfterAbort) {
  const auto& vt = local.table<ciuic_communicator_vt>();
  local.check(vt.health(local.self()));
  vt.abort(local.self(), CIUIC_CANCELLED);
  EXPECT_EQ(error_of([&] { submit(collective(CIUIC_OP_BARRIER, nullptr, nullptr)); }).code(),
            CIUIC_CANCELLED);
  EXPECT_EQ(error_of([&] { local.check(vt.health(local.self())); }).code(), CIUIC_CANCELLED);
}

}  // namespace
}  // namespace ciuic::testing
