// SPDX-License-Identifier: MIT
#include "core/plugin/quarantine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "private_folders.h"

namespace ciuic::core {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kA(64, 'a');
const std::string kB = "b" + std::string(63, 'a');

struct QuarantineTest : OwnCaches {
  Quarantine quarantine{folder.path()};
};

TEST_F(QuarantineTest, IsEmptyWithoutAFile) { EXPECT_THAT(quarantine.entries(), IsEmpty()); }

TEST_F(QuarantineTest, KeepsReasonFileAndEnd) {
  quarantine.add(kA, "libx.so", "load: it crashed");
  const auto entry = Quarantine(folder.path()).find(kA);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->file, "libx.so");
  EXPECT_EQ(entry->reason, "load: it crashed");
  EXPECT_EQ(entry->until - entry->since, 24 * 3600);
  EXPECT_FALSE(quarantine.find(kB));
}

TEST_F(QuarantineTest, EntryEndsByItself) {
  quarantine.add(kA, "libx.so", "x", seconds(-1));
  EXPECT_FALSE(quarantine.find(kA));
  quarantine.add(kB, "liby.so", "y");
  EXPECT_THAT(quarantine.entries(), SizeIs(1)) << "and is forgotten at the next write";
}

TEST_F(QuarantineTest, IsLiftedByThePrefixOfAHash) {
  quarantine.add(kA, "libx.so", "x");
  quarantine.add(kB, "liby.so", "y");
  EXPECT_EQ(quarantine.remove("aa"), 0u) << "too short to mean one";
  EXPECT_EQ(quarantine.remove("aaaaaa"), 1u);
  EXPECT_TRUE(quarantine.find(kB));
  quarantine.clear();
  EXPECT_THAT(quarantine.entries(), IsEmpty());
}

TEST_F(QuarantineTest, DamagedFileCountsAsEmptyAndIsReplaced) {
  for (const char* text : {"", "{", "[1, 2]", "{\"aaaa\": 3}", "{\"x\": {\"until\": \"never\"}}"}) {
    std::ofstream(quarantine.path()) << text;
    EXPECT_THAT(quarantine.entries(), IsEmpty()) << text;
  }
  quarantine.add(kA, "libx.so", "x");
  EXPECT_TRUE(quarantine.find(kA));
}

}  // namespace
}  // namespace ciuic::core
