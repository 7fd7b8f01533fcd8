// SPDX-License-Identifier: MIT
#include "core/config/plain_file.h"

#include <fstream>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace ciuic::core {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PlainFile, IsReadWhole) {
  const TemporaryFolder folder;
  const std::string bytes(3'000'001, '\xa5');
  std::ofstream(folder.file("file"), std::ios::binary) << bytes;
  const PlainFile file = read_plain_file(folder.file("file"), bytes.size());
  EXPECT_THAT(file.problem, IsEmpty());
  EXPECT_TRUE(file.bytes == bytes);
  EXPECT_EQ(read_plain_file(folder.file("file"), bytes.size() - 1).problem, "is longer than 3MB");
}

TEST(PlainFile, WhatIsNoneIsNamed) {
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_plain_file(pipe, 100).problem, "is a pipe");
  EXPECT_EQ(read_plain_file("/dev/zero", 100).problem, "is a device");
  EXPECT_EQ(read_plain_file(folder.path(), 100).problem, "is a folder");
  EXPECT_THAT(read_plain_file(folder.file("none"), 100).problem, HasSubstr("No such file"));
}

TEST(PlainFile, OneWithoutASizeIsReadToItsEnd) {
  EXPECT_THAT(read_plain_file("/proc/self/status", 1 << 20).bytes, HasSubstr("Pid:"));
  EXPECT_THAT(read_plain_file("/proc/self/status", 8).problem, HasSubstr("is longer than 8"));
}

}  // namespace
}  // namespace ciuic::core
