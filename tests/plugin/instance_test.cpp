// SPDX-License-Identifier: MIT
#include "core/plugin/instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plugin/library.h"
#include "core/plugin/precision.h"

namespace ciuic::core {
namespace {

using ::testing::HasSubstr;

struct InstanceTest : ::testing::Test {
  static PluginOptions defaults(const FoundPlugin& found) {
    std::vector<Problem> problems;
    PluginOptions options =
        PluginOptions::from(nullptr, found.descriptor->options, "x.y", {}, problems);
    EXPECT_TRUE(problems.empty());
    return options;
  }
  std::unique_ptr<HostContext> host(const FoundPlugin& found) {
    return std::make_unique<HostContext>(found.descriptor->name, log);
  }

  Log log{Log::Options{0, 1, LogLevel::Off, "", false}};
  Catalog catalog{{std::string(CIUIC_BUILD_DIR) + "/plugins", CIUIC_BROKEN_PLUGINS}};
};

TEST_F(InstanceTest, CreateThatThrowsIsAFailureWithItsText) {
  const FoundPlugin found = catalog.find(CIUIC_KIND_PROFILER, "throws_in_create");
  try {
    const Instance instance(found, host(found), defaults(found), {});
    FAIL() << "it started";
  } catch (const Failure& f) {
    EXPECT_EQ(f.code(), ExitCode::Plugin);
    EXPECT_THAT(f.what(),
                HasSubstr("profiler throws_in_create cannot start: the flux capacitor is empty"));
  }
}

TEST_F(InstanceTest, PrecisionAnswersThroughItsThinClass) {
  const FoundPlugin found = catalog.find(CIUIC_KIND_PRECISION, "fp32");
  const PrecisionPlugin precision(found, host(found), defaults(found), Placement{});
  EXPECT_TRUE(same(precision.dtype_for("model.layers.0.mlp.gate_proj", CIUIC_ROLE_VALUE), kF32));
  EXPECT_EQ(precision.loss_scale(), 1.0);
}

TEST_F(InstanceTest, ValidateSeesTheWorld) {
  const FoundPlugin found = catalog.find(CIUIC_KIND_COMMUNICATOR, "local");
  Placement two;
  two.world = 2;
  EXPECT_EQ(validate(found, log, defaults(found), Placement{}), "");
  EXPECT_THAT(validate(found, log, defaults(found), two), HasSubstr("world=2"));
}

TEST_F(InstanceTest, InstanceGivesAllItsMemoryBack) {
  const FoundPlugin found = catalog.find(CIUIC_KIND_PROFILER, "monitor");
  const Instance instance(found, host(found), defaults(found), {});
  EXPECT_GE(instance.live_bytes(), 0);
}

TEST(ExitCodes, FollowTheContract) {
  EXPECT_EQ(exit_code_of(CIUIC_KIND_COMMUNICATOR, CIUIC_UNAVAILABLE), ExitCode::Communication);
  EXPECT_EQ(exit_code_of(CIUIC_KIND_SHARDING, CIUIC_DEADLINE), ExitCode::Communication);
  EXPECT_EQ(exit_code_of(CIUIC_KIND_SHARDING, CIUIC_EXHAUSTED), ExitCode::OutOfMemory);
  EXPECT_EQ(exit_code_of(CIUIC_KIND_CHECKPOINT, CIUIC_EXHAUSTED), ExitCode::Storage);
  for (const int32_t code : {CIUIC_INTERNAL, CIUIC_INVALID, CIUIC_PRECONDITION}) {
    EXPECT_EQ(exit_code_of(CIUIC_KIND_OPTIMIZER, code), ExitCode::Plugin) << "not a bug of ours";
  }
}

}  // namespace
}  // namespace ciuic::core
