// SPDX-License-Identifier: MIT
#include "core/plugin/abi_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(AbiPolicy, BeforeOneBothNumbersMustAgree) {
  EXPECT_THAT(abi_problem({0, 2}, {0, 2}, 2), IsEmpty());
  EXPECT_THAT(abi_problem({0, 2}, {0, 1}, 1),
              AllOf(HasSubstr("plugin ABI 0.1"), HasSubstr("this host has 0.2")));
  EXPECT_THAT(abi_problem({0, 2}, {0, 3}, 3),
              AllOf(HasSubstr("plugin ABI 0.3"), HasSubstr("this host has 0.2")));
  EXPECT_THAT(abi_problem({0, 2}, {0, 3}, 0), HasSubstr("rebuild"));
}

TEST(AbiPolicy, FromOneOnOlderAndNewerPluginsRun) {
  EXPECT_THAT(abi_problem({1, 4}, {1, 0}, 0), IsEmpty());
  EXPECT_THAT(abi_problem({1, 4}, {1, 4}, 4), IsEmpty());
  EXPECT_THAT(abi_problem({1, 4}, {1, 9}, 4), IsEmpty());  // newer, and content with this host
  EXPECT_THAT(abi_problem({1, 0}, {1, 1}, 0), IsEmpty());
}

TEST(AbiPolicy, FromOneOnOnlyWhatThePluginNeedsRefusesIt) {
  EXPECT_THAT(abi_problem({1, 4}, {1, 9}, 5),
              AllOf(HasSubstr("ABI 1.5 or newer"), HasSubstr("this host has 1.4")));
}

TEST(AbiPolicy, AnotherMajorIsRefusedEitherWay) {
  EXPECT_THAT(abi_problem({1, 0}, {0, 2}, 0), HasSubstr("this host has 1.0"));
  EXPECT_THAT(abi_problem({1, 0}, {2, 0}, 0), HasSubstr("plugin ABI 2.0"));
  EXPECT_THAT(abi_problem({0, 2}, {1, 2}, 0), HasSubstr("plugin ABI 1.2"));
}

}  // namespace
}  // namespace ciuic::core
