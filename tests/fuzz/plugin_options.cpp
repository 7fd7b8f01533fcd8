// SPDX-License-Identifier: MIT
//
// A table of TOML turned into the options of a plugin that declares one of every type. What is
// accepted is in range, and reads back to the same values from config.resolved.toml.
#include "core/config/plugin_options.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/options.hpp>

#include "core/config/toml_reader.h"
#include "expect.h"

using ciuic::core::Node;
using ciuic::core::PluginOptions;
using ciuic::core::Problem;

namespace {

constexpr const char* kChoices[] = {"auto", "ring", "tree", nullptr};
constexpr int64_t kLimit = int64_t{1} << 40;

const auto& specs() {
  using namespace ciuic;
  static const auto table = option_table(
      option_bool("flag", true, "a flag"), option_i64("rounds", 4, 1, 100, "rounds"),
      option_i64("any", 0, 0, 0, "any whole number"),
      option_count("tokens", 1000, 0, kLimit, "tokens", CIUIC_OPTION_AFFECTS_NUMERICS),
      option_size("chunk", 4096, 1, kLimit, "bytes"),
      option_duration("timeout", 30'000'000'000, 0, INT64_MAX, "a duration"),
      option_f64("rate", 0.5, 0.0, 1.0, "a rate"), option_f64("real", 0, 0, 0, "any real"),
      option_string("path", "a/b", "a text"),
      option_string("token", "", "a secret", CIUIC_OPTION_SECRET),
      option_enum("algorithm", "auto", kChoices, "one of three"), option_strings("names", "texts"),
      option_of(CIUIC_TYPE_LIST_I64, "shape", "whole numbers", 0),
      option_of(CIUIC_TYPE_LIST_F64, "betas", "reals", 0));
  return table;
}

std::string resolved(const PluginOptions& options) {
  std::string out;
  for (const auto& [key, text] : options.toml_entries()) {
    out += key + " = " + text + "\n";
  }
  return out;
}

PluginOptions convert(std::string_view text, std::vector<Problem>& problems) {
  const Node root = ciuic::core::parse_toml(text, "run.toml", problems);
  return PluginOptions::from(&root, ciuic::to_array(specs()), "communicator.any", {"run.toml", 1},
                             problems);
}

void expect_in_range(const PluginOptions& options) {
  const ciuic::Options values(options.array());
  expect(values.i64("rounds") >= 1 && values.i64("rounds") <= 100, "rounds is out of range");
  expect(values.i64("tokens") >= 0 && values.i64("tokens") <= kLimit, "tokens is out of range");
  expect(values.i64("chunk") >= 1 && values.i64("chunk") <= kLimit, "chunk is out of range");
  expect(values.i64("timeout") >= 0, "timeout is out of range");
  expect(values.f64("rate") >= 0 && values.f64("rate") <= 1, "rate is out of range");
  const std::string algorithm = values.string("algorithm");
  expect(algorithm == "auto" || algorithm == "ring" || algorithm == "tree", "no such choice");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<Problem> problems;
  const PluginOptions options = convert({reinterpret_cast<const char*>(data), size}, problems);
  if (!problems.empty()) {
    return 0;
  }
  expect_in_range(options);
  (void)options.numeric_settings();
  const std::string text = resolved(options);
  const PluginOptions again = convert(text, problems);
  expect(problems.empty(), "the resolved options have problems");
  expect(resolved(again) == text, "the resolved options read back to others");
  return 0;
}
