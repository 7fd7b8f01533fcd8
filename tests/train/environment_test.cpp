// SPDX-License-Identifier: MIT
#include "core/launch/environment.h"

#include <map>
#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

struct Environment {
  explicit Environment(const Variables& variables) {
    for (const char* name : kNames) {
      unsetenv(name);
    }
    for (const auto& [name, value] : variables) {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Environment() {
    for (const char* name : kNames) {
      unsetenv(name);
    }
  }
  static constexpr const char* kNames[] = {
      "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
};

const Variables kWhole{
    {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};

TEST(RankFromEnvironment, NothingMeansNoLauncher) {
  const Environment env(Variables{{"MASTER_ADDR", "127.0.0.1"}});
  EXPECT_FALSE(rank_from_environment("auto").has_value());
}

TEST(RankFromEnvironment, ReadsALaunchersRank) {
  const Environment env(kWhole);
  const auto id = rank_from_environment("auto");
  ASSERT_TRUE(id.has_value());
  EXPECT_EQ(id->rank, 1);
  EXPECT_EQ(id->world, 2);
  EXPECT_EQ(id->local_rank, 1);
}

TEST(RankFromEnvironment, LocalRankIsTheLaunchersWord) {
  Variables v = kWhole;
  v["WORLD_SIZE"] = "4";
  v["RANK"] = "3";
  v["LOCAL_RANK"] = "1";
  v["LOCAL_WORLD_SIZE"] = "2";
  const Environment env(v);
  EXPECT_EQ(rank_from_environment("auto")->local_rank, 1);
  EXPECT_EQ(rank_from_environment("auto")->local_world, 2);
}

class MissingVariable : public ::testing::TestWithParam<const char*> {};

TEST_P(MissingVariable, IsNamed) {
  Variables v = kWhole;
  v.erase(GetParam());
  const Environment env(v);
  try {
    (void)rank_from_environment("auto");
    FAIL() << "accepted";
  } catch (const Failure& f) {
    EXPECT_EQ(f.code(), ExitCode::Environment);
    EXPECT_THAT(f.what(), HasSubstr(std::string(GetParam()) + " is not set"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, MissingVariable,
                         ::testing::Values("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"));

TEST(RankFromEnvironment, AnAddressInTheFileNeedsNoMaster) {
  Variables v = kWhole;
  v.erase("MASTER_ADDR");
  v.erase("MASTER_PORT");
  const Environment env(v);
  EXPECT_EQ(rank_from_environment("tcp://127.0.0.1:29500")->rank, 1);
}

struct BadValue {
  const char* name;
  const char* value;
};
class BadVariable : public ::testing::TestWithParam<BadValue> {};

TEST_P(BadVariable, IsRefusedWithItsValue) {
  Variables v = kWhole;
  v[GetParam().name] = GetParam().value;
  const Environment env(v);
  try {
    (void)rank_from_environment("auto");
    FAIL() << "accepted";
  } catch (const Failure& f) {
    EXPECT_EQ(f.code(), ExitCode::Environment);
    EXPECT_THAT(f.what(), HasSubstr(GetParam().name));
    EXPECT_THAT(f.what(), HasSubstr(GetParam().value));
  }
}

INSTANTIATE_TEST_SUITE_P(All, BadVariable,
                         ::testing::Values(BadValue{"RANK", "2"}, BadValue{"RANK", "-1"},
                                           BadValue{"RANK", "one"}, BadValue{"RANK", "1x"},
                                           BadValue{"WORLD_SIZE", "0"},
                                           BadValue{"MASTER_PORT", "65536"},
                                           BadValue{"MASTER_PORT", "http"},
                                           BadValue{"LOCAL_RANK", "7"}));

TEST(UsableCores, AreAtLeastOne) { EXPECT_GE(usable_cores(), 1); }

}  // namespace
}  // namespace ciuic::core
