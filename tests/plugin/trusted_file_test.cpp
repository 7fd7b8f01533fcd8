// SPDX-License-Identifier: MIT
#include "core/plugin/trusted_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "private_folders.h"

namespace ciuic::core {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// A folder "plugins" with one file, below a temporary one.
class TrustedFile : public ::testing::Test {
 protected:
  TrustedFile() {
    fs::create_directory(folder.file("plugins"));
    chmod(folder.file("plugins").c_str(), 0755);
    std::ofstream(file) << "content";
    chmod(file.c_str(), 0644);
  }
  /// "" or why it is refused.
  [[nodiscard]] std::string refused(Trust rule = Trust::Owner) const {
    const auto result = open_trusted(file, rule, context);
    const auto* problem = std::get_if<TrustProblem>(&result);
    return problem == nullptr ? "" : problem->reason;
  }

  TemporaryFolder folder;
  std::string file = folder.file("plugins/libx.so");
  TrustContext context{geteuid(), geteuid(), "/nowhere/bin"};
};

TEST_F(TrustedFile, OneOfOursIsOpened) {
  EXPECT_EQ(refused(), "");
  auto result = open_trusted(file, Trust::Owner, context);
  const auto bytes = std::get<OpenFile>(result).read_all(100);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->size(), 7u);
}

TEST_F(TrustedFile, WritableByEverybodyIsRefusedWithTheCommandThatHelps) {
  chmod(file.c_str(), 0646);
  const auto result = open_trusted(file, Trust::Owner, context);
  const auto& problem = std::get<TrustProblem>(result);
  EXPECT_THAT(problem.reason, HasSubstr("may be written by everybody"));
  EXPECT_THAT(problem.remedy, HasSubstr("chmod go-w '" + file + "'"));
  EXPECT_EQ(refused(Trust::Any), "");
}

TEST_F(TrustedFile, FolderWritableByEverybodyIsRefusedEvenIfSticky) {
  chmod(folder.file("plugins").c_str(), 0777);
  EXPECT_THAT(refused(), HasSubstr("may be written by everybody"));
  chmod(folder.file("plugins").c_str(), 01777);
  EXPECT_THAT(refused(), HasSubstr("may be written by everybody"));
}

TEST_F(TrustedFile, FolderAboveMayBeStickyButNotJustWritable) {
  EXPECT_EQ(refused(), "") << "/tmp is above";
  chmod(folder.path().c_str(), 0777);
  EXPECT_THAT(refused(), HasSubstr(folder.path() + " may be written by everybody"));
  chmod(folder.path().c_str(), 01777);
  EXPECT_EQ(refused(), "");
  EXPECT_THAT(refused(Trust::Strict), HasSubstr("may be written by everybody"));
}

TEST_F(TrustedFile, FoldersAboveTheExecutableAreNotJudged) {
  chmod(folder.path().c_str(), 0777);
  context.executable_folder = folder.file("bin");
  EXPECT_EQ(refused(), "");
  EXPECT_NE(refused(Trust::Strict), "");
}

TEST_F(TrustedFile, SymbolicLinkIsRefusedAndALinkedFolderIsNot) {
  const std::string link = folder.file("plugins/liby.so");
  fs::create_symlink(file, link);
  const auto result = open_trusted(link, Trust::Owner, context);
  EXPECT_THAT(std::get<TrustProblem>(result).reason, HasSubstr("symbolic link"));
  fs::create_directory_symlink(folder.file("plugins"), folder.file("linked"));
  const auto through = open_trusted(folder.file("linked/libx.so"), Trust::Owner, context);
  EXPECT_TRUE(std::holds_alternative<OpenFile>(through));
}

TEST_F(TrustedFile, PipeNeitherHoldsUpNorPasses) {
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_THAT(refused(), HasSubstr("no regular file"));
}

TEST_F(TrustedFile, FileOfAnotherUserIsRefused) {
  // As seen by somebody else who is neither root nor the owner of the executable.
  if (geteuid() == 0) {
    ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  } else {
    context.user = context.executable_owner = geteuid() + 1;
  }
  EXPECT_THAT(refused(), HasSubstr("belongs to"));
}

TEST_F(TrustedFile, OwnerOfTheExecutableIsTrustedButNotStrictly) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can give files away";
  }
  ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  ASSERT_EQ(chown(folder.file("plugins").c_str(), 12345, 12345), 0);
  context.executable_owner = 12345;
  EXPECT_EQ(refused(), "");
  EXPECT_THAT(refused(Trust::Strict), HasSubstr("belongs to"));
}

TEST_F(TrustedFile, GroupOfSeveralIsNotPrivate) {
  chmod(file.c_str(), 0664);
  ASSERT_TRUE(geteuid() != 0 || chown(file.c_str(), 0, 1) == 0);
  if (geteuid() == 0) {
    EXPECT_THAT(refused(), HasSubstr("may be written by its group"));
    ASSERT_EQ(chown(file.c_str(), 0, 0), 0);
    EXPECT_EQ(refused(), "") << "root's own group";
  }
  EXPECT_THAT(refused(Trust::Strict), HasSubstr("may be written by its group"));
}

}  // namespace
}  // namespace ciuic::core
