// SPDX-License-Identifier: MIT
#include "core/plugin/replacement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json option(const std::string& key, uint32_t type = CIUIC_TYPE_I64) {
  return {{"key", key},
          {"doc", "d"},
          {"unit", ""},
          {"deprecated", ""},
          {"type", type},
          {"flags", 0},
          {"since_minor", 0},
          {"default", 4},
          {"min", 1},
          {"max", 8},
          {"choices", json::array()}};
}

json descriptor() {
  return {{"kind", CIUIC_KIND_OPTIMIZER},
          {"flags", CIUIC_FLAG_DETERMINISTIC},
          {"abi_major", 0},
          {"abi_minor", 2},
          {"min_host_minor", 2},
          {"state_schema", 3},
          {"state_schema_min", 2},
          {"functions", kHasState},
          {"name", "x"},
          {"version", "1.0.0"},
          {"vendor", ""},
          {"license", "MIT"},
          {"summary", "s"},
          {"build", ""},
          {"features", {"fast"}},
          {"options", json::array({option("k")})}};
}

/// What comes of changing one thing.
Replacement after(const json& change) {
  json now = descriptor();
  now.merge_patch(change);
  return compare({DescriptorInfo::from_json(descriptor())}, {DescriptorInfo::from_json(now)});
}

Replacement with_option(const json& change) {
  json o = option("k");
  o.merge_patch(change);
  return after({{"options", json::array({o})}});
}

TEST(Replacement, TheSameReplacesItself) {
  EXPECT_THAT(after(json::object()).obstacles, IsEmpty());
  EXPECT_THAT(after(json::object()).changes, IsEmpty());
}

TEST(Replacement, NewVersionIsAChangeAndNoObstacle) {
  const Replacement r = after({{"version", "2.0.0"}});
  EXPECT_THAT(r.obstacles, IsEmpty());
  EXPECT_THAT(r.changes, ElementsAre(HasSubstr("1.0.0 became 2.0.0")));
}

TEST(Replacement, AnotherNameOrKindIsNotThere) {
  EXPECT_THAT(after({{"name", "y"}}).obstacles, ElementsAre(HasSubstr("no optimizer x")));
  EXPECT_THAT(after({{"kind", CIUIC_KIND_PRECISION}}).obstacles,
              ElementsAre(HasSubstr("no optimizer x")));
}

TEST(Replacement, AbiAndStateAndFeaturesAndFlags) {
  EXPECT_THAT(after({{"abi_major", 1}}).obstacles, ElementsAre(HasSubstr("ABI 0.2 became 1.2")));
  EXPECT_THAT(after({{"min_host_minor", 3}}).obstacles, ElementsAre(HasSubstr("minor 3")));
  EXPECT_THAT(after({{"state_schema", 9}, {"state_schema_min", 4}}).obstacles,
              ElementsAre(HasSubstr("from schema 4")));
  EXPECT_THAT(after({{"state_schema", 4}}).obstacles, IsEmpty());
  EXPECT_THAT(after({{"state_schema", 2}}).obstacles, ElementsAre(HasSubstr("older")));
  EXPECT_THAT(after({{"functions", 0}}).obstacles, ElementsAre(HasSubstr("state_save")));
  EXPECT_THAT(after({{"features", json::array()}}).obstacles, ElementsAre(HasSubstr("fast")));
  EXPECT_THAT(after({{"features", {"fast", "new"}}}).obstacles, IsEmpty());
  EXPECT_THAT(after({{"flags", 0}}).obstacles, ElementsAre(HasSubstr("DETERMINISTIC")));
}

TEST(Replacement, OptionLostRetypedNarrowedOrRequired) {
  EXPECT_THAT(after({{"options", json::array()}}).obstacles, ElementsAre(HasSubstr("k is gone")));
  EXPECT_THAT(with_option({{"type", CIUIC_TYPE_SIZE}}).obstacles,
              ElementsAre(HasSubstr("another type")));
  EXPECT_THAT(with_option({{"max", 7}}).obstacles, ElementsAre(HasSubstr("narrower")));
  EXPECT_THAT(with_option({{"min", 2}}).obstacles, ElementsAre(HasSubstr("narrower")));
  EXPECT_THAT(with_option({{"max", 9}}).obstacles, IsEmpty());
  EXPECT_THAT(with_option({{"min", 0}, {"max", 0}}).obstacles, IsEmpty()) << "no bounds at all";
  EXPECT_THAT(with_option({{"flags", CIUIC_OPTION_REQUIRED}}).obstacles,
              ElementsAre(HasSubstr("required now")));
  json fresh = option("fresh");
  EXPECT_THAT(after({{"options", json::array({option("k"), fresh})}}).obstacles, IsEmpty());
  fresh["flags"] = CIUIC_OPTION_REQUIRED;
  EXPECT_THAT(after({{"options", json::array({option("k"), fresh})}}).obstacles,
              ElementsAre(HasSubstr("new and required")));
}

TEST(Replacement, AnotherDefaultMattersWhereItMovesTheLoss) {
  EXPECT_THAT(with_option({{"default", 5}}).obstacles, IsEmpty());
  EXPECT_THAT(with_option({{"default", 5}, {"flags", CIUIC_OPTION_AFFECTS_NUMERICS}}).obstacles,
              ElementsAre(HasSubstr("moves the loss")));
}

}  // namespace
}  // namespace ciuic::core
