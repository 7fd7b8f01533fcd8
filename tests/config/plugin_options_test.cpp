// SPDX-License-Identifier: MIT
#include "core/config/plugin_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/options.hpp>

#include "core/config/toml_reader.h"

namespace ciuic::core {
namespace {

using testing::ElementsAre;

constexpr const char* kColours[] = {"red", "green", nullptr};

const auto kSpecs =
    option_table(option_bool("on", true, ""), option_i64("rounds", 4, 1, 100, ""),
                 option_f64("rate", 0.5, 0, 1, "", CIUIC_OPTION_AFFECTS_NUMERICS),
                 option_string("label", "a label longer than SSO holds", ""),
                 option_enum("colour", "red", kColours, ""),
                 option_size("bucket", 64 << 20, 1, int64_t{1} << 40, ""),
                 option_duration("timeout", 30'000'000'000, 1, INT64_MAX, ""),
                 option_count("tokens", 2000, 0, 0, ""), option_strings("no_decay", ""),
                 option_of(CIUIC_TYPE_LIST_I64, "sizes", "", 0),
                 option_of(CIUIC_TYPE_LIST_F64, "weights", "", 0),
                 option_string("key", "", "", CIUIC_OPTION_SECRET));

struct Result {
  PluginOptions options;
  std::vector<Problem> problems;
};

template <typename Specs>
Result convert(const std::string& table, const Specs& specs,
               const PluginOptions::Fallbacks& fallbacks = {}) {
  Result result;
  const Node root = parse_toml("[kind.name]\n" + table, "x.toml", result.problems);
  const Node* node = table.empty() ? nullptr : root.find("kind")->find("name");
  result.options = PluginOptions::from(node, to_array(specs), "optimizer.name", {"x.toml", 99},
                                       result.problems, fallbacks);
  return result;
}

TEST(PluginOptions, DefaultsFillTheArrayInTheOrderOfTheSpecs) {
  const Result result = convert("", kSpecs);
  ASSERT_TRUE(result.problems.empty()) << format(result.problems);
  const ArrayView<ciuic_option> array(result.options.array());
  ASSERT_EQ(array.size(), kSpecs.size());
  for (size_t i = 0; i < kSpecs.size(); ++i) {
    EXPECT_EQ(to_view(array[i].key), kSpecs[i].key);
    EXPECT_EQ(array[i].type, kSpecs[i].type);
    EXPECT_EQ(array[i].toml_line, 0u);
  }
  const Options options(result.options.array());
  EXPECT_TRUE(options.boolean("on"));
  EXPECT_EQ(options.i64("rounds"), 4);
  EXPECT_EQ(options.string("label"), "a label longer than SSO holds");
  EXPECT_EQ(options.string("colour"), "red");
  EXPECT_TRUE(options.strings("no_decay").empty());
}

TEST(PluginOptions, GivenValuesAreTypedAndCarryTheirLine) {
  Result result = convert(
      "on = false\nrounds = 100\nrate = 1\nlabel = \"x\"\ncolour = \"green\"\nbucket = "
      "\"1KiB\"\ntimeout = \"250ms\"\n"
      "tokens = \"2B\"\nno_decay = [\"*norm*\", \"a\"]\nsizes = [1, 2]\nweights = [1, 0.5]\n",
      kSpecs);
  ASSERT_TRUE(result.problems.empty()) << format(result.problems);
  // Short strings live inside their object: a move must not leave pointers behind.
  const PluginOptions moved = std::move(result.options);
  const Options options(moved.array());
  EXPECT_FALSE(options.boolean("on"));
  EXPECT_EQ(options.i64("rounds"), 100);
  EXPECT_EQ(options.f64("rate"), 1.0);
  EXPECT_EQ(options.string("label"), "x");
  EXPECT_EQ(options.string("colour"), "green");
  EXPECT_EQ(options.i64("bucket"), 1024);
  EXPECT_EQ(options.i64("timeout"), 250'000'000);
  EXPECT_EQ(options.i64("tokens"), 2'000'000'000);
  EXPECT_THAT(options.strings("no_decay"), ElementsAre("*norm*", "a"));
  const ArrayView<ciuic_option> array(moved.array());
  EXPECT_EQ(array[1].toml_line, 3u);
  EXPECT_EQ(ArrayView<int64_t>(array[9].value.list)[1], 2);
  EXPECT_EQ(ArrayView<double>(array[10].value.list)[1], 0.5);
}

TEST(PluginOptions, AllProblemsAtOnce) {
  const Result result = convert(
      "on = 1\nrounds = 101\nrate = nan\nlabel = 3\ncolour = \"geen\"\nbucket = \"0B\"\ntimeout = "
      "30\ntokens = -1\n"
      "no_decay = \"a\"\nsizes = [1.5]\nweights = [inf]\nruonds = 3\ngradient_clip_norm = 1.0\n",
      kSpecs);
  EXPECT_EQ(
      format(result.problems),
      "x.toml:2: optimizer.name.on: got 1, expected true or false\n"
      "x.toml:3: optimizer.name.rounds: got 101, expected an integer, 1 to 100\n"
      "x.toml:4: optimizer.name.rate: got nan, expected a finite number, 0.0 to 1.0\n"
      "x.toml:5: optimizer.name.label: got 3, expected a string\n"
      "x.toml:6: optimizer.name.colour: got \"geen\", expected one of red | green; did you mean "
      "green?\n"
      "x.toml:7: optimizer.name.bucket: got \"0B\", expected a size such as \"64MiB\", 1B to 1TiB\n"
      "x.toml:8: optimizer.name.timeout: got 30, expected a duration such as \"30s\" or \"10m\", "
      "1ns or "
      "more\n"
      "x.toml:9: optimizer.name.tokens: got -1, expected a count such as 200 or \"2B\"\n"
      "x.toml:10: optimizer.name.no_decay: got \"a\", expected a list of strings\n"
      "x.toml:11: optimizer.name.sizes: got [1.5], expected a list of integers\n"
      "x.toml:12: optimizer.name.weights: got [inf], expected a list of finite numbers\n"
      "x.toml:13: optimizer.name.ruonds is no option; did you mean rounds?\n"
      "x.toml:14: optimizer.name.gradient_clip_norm is no option; it belongs to [optimizer]");
  EXPECT_EQ(ArrayView<ciuic_option>(result.options.array()).size(), kSpecs.size());
}

TEST(PluginOptions, RequiredOptionsAreMissed) {
  const auto specs = option_table(option_i64("sequences", 0, 1, 1000, "", CIUIC_OPTION_REQUIRED));
  EXPECT_EQ(format(convert("", specs).problems),
            "x.toml:99: optimizer.name.sequences is missing, expected an integer, 1 to 1000");
  EXPECT_EQ(format(convert("other = 1", specs).problems),
            "x.toml:1: optimizer.name.sequences is missing, expected an integer, 1 to 1000\n"
            "x.toml:2: optimizer.name.other is no option");
  EXPECT_TRUE(convert("sequences = 3", specs).problems.empty());
}

TEST(PluginOptions, FallbacksServeDeclaredOptionsThatTheTableLeavesOut) {
  const PluginOptions::Fallbacks fallbacks{{"timeout", {std::string("5s"), {"x.toml", 7}, {}}},
                                           {"undeclared", {int64_t{1}, {"x.toml", 8}, {}}}};
  const Result without = convert("", kSpecs, fallbacks);
  EXPECT_TRUE(without.problems.empty()) << format(without.problems);
  EXPECT_EQ(Options(without.options.array()).i64("timeout"), 5'000'000'000);
  const Result with = convert("timeout = \"1s\"", kSpecs, fallbacks);
  EXPECT_EQ(Options(with.options.array()).i64("timeout"), 1'000'000'000);
}

TEST(PluginOptions, ResolvedEntriesReadBackAndHideSecrets) {
  const Result first =
      convert("bucket = 1000\nno_decay = [\"a b\"]\nkey = \"hush\"\nsizes = [3]", kSpecs);
  std::string table;
  for (const auto& [key, value] : first.options.toml_entries()) {
    EXPECT_NE(key, "key");
    table += key + " = " + value + "\n";
  }
  const Result second = convert(table, kSpecs);
  EXPECT_TRUE(second.problems.empty()) << format(second.problems);
  EXPECT_EQ(first.options.toml_entries(), second.options.toml_entries());
  EXPECT_EQ(first.options.numeric_settings(), (TomlEntries{{"optimizer.name.rate", "0.5"}}));
}

TEST(PluginOptions, DeprecatedOptionsWarn) {
  auto specs = option_table(option_bool("old", false, ""));
  specs[0].deprecated = "use new";
  const Result result = convert("old = true", specs);
  EXPECT_TRUE(result.problems.empty());
  EXPECT_EQ(format(result.options.warnings()),
            "x.toml:2: optimizer.name.old is deprecated: use new");
  EXPECT_TRUE(convert("", specs).options.warnings().empty());
}

TEST(PluginOptions, UnknownTypesAreRefused) {
  auto specs = option_table(option_bool("a", false, ""));
  specs[0].type = 77;
  EXPECT_EQ(format(convert("a = true", specs).problems),
            "x.toml:1: optimizer.name.a: the plugin declares it with a type that this host does "
            "not know");
}

}  // namespace
}  // namespace ciuic::core
