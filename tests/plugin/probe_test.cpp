// SPDX-License-Identifier: MIT
#include "core/plugin/probe.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plugin/instance.h"
#include "private_folders.h"

namespace ciuic::core {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string path_of(const std::string& name) {
  return std::string(CIUIC_BROKEN_PLUGINS) + "/lib" + name + ".so";
}

/// Patient enough for a machine that has other work; what must hang gets less.
Probe probe(milliseconds patience = milliseconds(60'000)) {
  return {Probe::find_executable(), patience};
}

std::vector<ProbeAnswer> look(const std::vector<std::string>& names,
                              milliseconds patience = milliseconds(60'000)) {
  std::vector<ProbeRequest> requests;
  for (const std::string& name : names) {
    requests.push_back({path_of(name), 0, "", {}});
  }
  return probe(patience).look(requests);
}

TEST(Probe, ShowsWhatADescriptorSays) {
  const auto answers = look({"sound"});
  ASSERT_THAT(answers, SizeIs(1));
  ASSERT_FALSE(answers[0].refusal) << answers[0].refusal->text();
  ASSERT_THAT(answers[0].plugins, SizeIs(1));
  EXPECT_EQ(answers[0].plugins[0]->name, "sound");
  EXPECT_FALSE(answers[0].stays_resident);
  EXPECT_THAT(answers[0].warnings, IsEmpty());
}

struct Case {
  const char* plugin;
  const char* step;
  const char* reason;
  bool crashes;
};

class BadPlugin : public ::testing::TestWithParam<Case> {};

/// The culprit is named with its step, and its neighbours are looked at all the same.
TEST_P(BadPlugin, IsBlamedAndItsNeighboursAreNot) {
  const Case& c = GetParam();
  const bool hangs = std::string(c.plugin).starts_with("hang");
  const auto answers = look({"sound", c.plugin, "sound"}, milliseconds(hangs ? 2'000 : 60'000));
  ASSERT_THAT(answers, SizeIs(3));
  EXPECT_FALSE(answers[0].refusal);
  EXPECT_FALSE(answers[2].refusal);
  ASSERT_TRUE(answers[1].refusal);
  EXPECT_EQ(answers[1].refusal->step, c.step);
  EXPECT_THAT(answers[1].refusal->reason, HasSubstr(c.reason));
  EXPECT_EQ(answers[1].has_crashed, c.crashes);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadPlugin,
    ::testing::Values(Case{"crash_in_constructor", "load", "signal 6", true},
                      Case{"hang_in_constructor", "load", "did not return within", true},
                      Case{"exit_in_constructor", "load", "exit code 0", true},
                      Case{"babble_in_constructor", "load", "answers", true},
                      Case{"crash_in_query", "query", "signal 11", true},
                      Case{"endless_query", "query", "never says where", false},
                      Case{"fickle_query", "query", "another descriptor", false},
                      Case{"no_symbol", "query", "ciuic_plugin_query", false},
                      Case{"undefined_symbol", "load", "ciuic_test_defined_nowhere", false},
                      Case{"missing_function", "descriptor", "is missing, and it is required",
                           false}),
    [](const auto& tried) { return tried.param.plugin; });

TEST(Probe, SymbolOfADependencyIsNotThePlugins) {
  const auto answers = look({"borrowed_symbol"});
  ASSERT_TRUE(answers[0].refusal);
  EXPECT_EQ(answers[0].refusal->step, "query");
  EXPECT_THAT(answers[0].refusal->reason, HasSubstr("not its own"));
}

TEST(Probe, ResidencyIsMeasured) {
  const auto answers = look({"stays_mapped"});
  ASSERT_FALSE(answers[0].refusal) << answers[0].refusal->text();
  EXPECT_TRUE(answers[0].stays_resident);
}

TEST(Probe, ValidateRunsInTheChild) {
  const std::string local = std::string(CIUIC_BUILD_DIR) + "/plugins/liblocal.so";
  const auto described = probe().look({{local, 0, "", {}}});
  ASSERT_FALSE(described[0].refusal);
  std::vector<Problem> problems;
  const PluginOptions options = PluginOptions::from(nullptr, described[0].plugins[0]->options,
                                                    "communicator.local", {}, problems);
  Placement two;
  two.world = 2;
  const auto answers = probe().validate(
      {{local, CIUIC_KIND_COMMUNICATOR, "local", validate_arguments(options, Placement{})},
       {local, CIUIC_KIND_COMMUNICATOR, "local", validate_arguments(options, two)}});
  EXPECT_THAT(answers[0].validated, IsEmpty());
  EXPECT_THAT(answers[1].validated, HasSubstr("world=2"));
}

TEST(Probe, WithoutItsExecutableNothingIsBlamed) {
  try {
    (void)Probe("/nowhere/ciuic-probe", milliseconds(1000)).look({{path_of("sound"), 0, "", {}}});
    FAIL() << "it answered";
  } catch (const Failure& f) {
    EXPECT_EQ(f.code(), ExitCode::Environment);
  }
  try {
    (void)Probe("/bin/false", milliseconds(10'000)).look({{path_of("sound"), 0, "", {}}});
    FAIL() << "it answered";
  } catch (const Failure& f) {
    EXPECT_EQ(f.code(), ExitCode::Environment);
    EXPECT_THAT(f.what(), HasSubstr("ciuic-probe does not work"));
  }
}

TEST(DescriptorInfo, TravelsAsJsonAndBack) {
  const auto described =
      probe().look({{std::string(CIUIC_BUILD_DIR) + "/plugins/libadamw.so", 0, "", {}}});
  ASSERT_FALSE(described[0].refusal);
  const DescriptorInfo& info = *described[0].plugins[0];
  const auto again = DescriptorInfo::from_json(info.to_json());
  EXPECT_TRUE(is_same(info, *again));
  EXPECT_EQ(again->options.count, info.own_options.size());
}

TEST(DescriptorInfo, NonsenseIsNoDescriptor) {
  const auto described =
      probe().look({{std::string(CIUIC_BUILD_DIR) + "/plugins/libadamw.so", 0, "", {}}});
  const nlohmann::json whole = described[0].plugins[0]->to_json();
  for (const auto& [key, value] : whole.items()) {
    nlohmann::json without = whole;
    without.erase(key);
    EXPECT_ANY_THROW((void)DescriptorInfo::from_json(without)) << key;
    nlohmann::json other = whole;
    other[key] = nlohmann::json::array({nlohmann::json::object()});
    EXPECT_ANY_THROW((void)DescriptorInfo::from_json(other)) << key;
  }
}

}  // namespace
}  // namespace ciuic::core
