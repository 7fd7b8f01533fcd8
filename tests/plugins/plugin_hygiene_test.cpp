// SPDX-License-Identifier: MIT
//
// What holds for every plugin: one exported symbol, a complete descriptor, sane options, nothing
// left behind.
#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins.h"

namespace ciuic::testing {
namespace {

using ::testing::HasSubstr;

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string out;
  std::array<char, 256> line;
  while (fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    out += line.data();
  }
  return out;
}

class PluginHygiene : public ::testing::TestWithParam<const char*> {
 protected:
  const LoadedPlugin plugin = load_plugin(GetParam());
};

INSTANTIATE_TEST_SUITE_P(InTree, PluginHygiene,
                         ::testing::Values("local", "ddp", "adamw", "sgd", "lion", "muon", "fp32",
                                           "bf16", "fixed", "monitor"),
                         [](const auto& plugin) { return std::string(plugin.param); });

TEST_P(PluginHygiene, ExportsOneSymbol) {
  const std::string symbols = output_of("nm -D --defined-only '" + plugin_path(GetParam()) + "'");
  EXPECT_EQ(std::count(symbols.begin(), symbols.end(), '\n'), 1) << symbols;
  EXPECT_THAT(symbols, HasSubstr(" T ciuic_plugin_query"));
}

TEST_P(PluginHygiene, DescriptorIsComplete) {
  const ciuic_descriptor& d = plugin.descriptor();
  EXPECT_EQ(d.struct_size, sizeof(ciuic_descriptor));
  EXPECT_EQ(d.abi_major, CIUIC_ABI_MAJOR);
  EXPECT_EQ(d.abi_minor, CIUIC_ABI_MINOR);
  EXPECT_GE(d.kind, uint32_t{CIUIC_KIND_COMMUNICATOR});
  EXPECT_LE(d.kind, uint32_t{CIUIC_KIND_OPTIMIZER});
  EXPECT_STREQ(d.name, GetParam());
  for (const char* text : {d.version, d.license, d.summary, d.build}) {
    EXPECT_NE(std::string(text), "");
  }
  EXPECT_NE(d.vt, nullptr);
  EXPECT_NE(d.create, nullptr);
  EXPECT_NE(d.destroy, nullptr);
}

TEST_P(PluginHygiene, QueryIsPureAndBounded) {
  EXPECT_EQ(plugin.query(CIUIC_ABI_MAJOR, 0), &plugin.descriptor());
  EXPECT_EQ(plugin.query(CIUIC_ABI_MAJOR, 1), nullptr);
  EXPECT_EQ(plugin.query(CIUIC_ABI_MAJOR, ~0U), nullptr);
  EXPECT_EQ(plugin.query(CIUIC_ABI_MAJOR + 1, 0), nullptr);
}

template <typename T>
void expect_in_range(const ciuic_option_spec& spec, T def, T min, T max) {
  if (min != T{} || max != T{}) {
    EXPECT_LE(min, def) << spec.key;
    EXPECT_LE(def, max) << spec.key;
  }
}

TEST_P(PluginHygiene, OptionsAreSane) {
  for (const ciuic_option_spec& spec : ArrayView<ciuic_option_spec>(plugin.descriptor().options)) {
    EXPECT_EQ(spec.struct_size, sizeof(ciuic_option_spec)) << spec.key;
    EXPECT_EQ(std::string(spec.key).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"),
              std::string::npos);
    EXPECT_GT(std::string(spec.doc).size(), 10U) << spec.key << " needs a text";
    EXPECT_NE(spec.unit, nullptr) << spec.key;
    switch (spec.type) {
      case CIUIC_TYPE_F64:
        expect_in_range(spec, spec.def.f, spec.min.f, spec.max.f);
        break;
      case CIUIC_TYPE_I64:
      case CIUIC_TYPE_SIZE:
      case CIUIC_TYPE_COUNT:
      case CIUIC_TYPE_DURATION:
        expect_in_range(spec, spec.def.i, spec.min.i, spec.max.i);
        break;
      default:
        break;
    }
  }
}

TEST_P(PluginHygiene, DefaultsAreValidAndLeaveNothingBehind) {
  TestHost host;
  host.fail_allocations_after(0);  // create may not need device memory
  const OptionValues options =
      std::string(GetParam()) == "fixed" ? OptionValues{{"sequences", 8}} : OptionValues{};
  plugin.validate(host, options);
  for (int i = 0; i < 100; ++i) {
    const PluginInstance first = plugin.create(host, options);
    const PluginInstance second = plugin.create(host);
    first.quiesce();
  }
  EXPECT_TRUE(host.balanced());
}

}  // namespace
}  // namespace ciuic::testing
