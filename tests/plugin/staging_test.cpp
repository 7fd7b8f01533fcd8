// SPDX-License-Identifier: MIT
#include "core/plugin/staging.h"

#include <chrono>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plugin/private_folder.h"
#include "core/plugin/sha256.h"
#include "private_folders.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;

class Staging : public OwnCaches {
 protected:
  Staging() { make_private_folder(folder.file("staged")); }
  [[nodiscard]] Bundle bundle(const std::string& file) const {
    const auto bytes = bytes_of(file);
    return bundle_of(file, ElfFile::parse(bytes), sha256(bytes), Trust::Owner,
                     TrustContext::of_this_process());
  }
  [[nodiscard]] std::string stage(const std::string& file) const {
    return area.stage(bundle(file), bytes_of(file));
  }
  StagingArea area{folder.file("staged")};
};

TEST_F(Staging, CopyIsPrivateAndNamedByItsHash) {
  const std::string file = broken("sound");
  const std::string staged = stage(file);
  EXPECT_EQ(staged, folder.file("staged/") + sha256(bytes_of(file)) + ".libsound/libsound.so");
  EXPECT_EQ(bytes_of(staged), bytes_of(file));
  struct stat status {};
  ASSERT_EQ(stat(staged.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0500u);
  ASSERT_EQ(stat(fs::path(staged).parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0077, 0u);
}

TEST_F(Staging, SecondTimeUsesTheSameCopy) {
  const std::string file = broken("sound");
  const std::string staged = stage(file);
  struct stat before {
  }, after{};
  ASSERT_EQ(stat(staged.c_str(), &before), 0);
  EXPECT_EQ(stage(file), staged);
  ASSERT_EQ(stat(staged.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(Staging, SameContentUnderTwoNamesIsTwoCopies) {
  const std::string file = broken("sound");
  const std::string other = copy(file, "libother.so");
  const std::string staged = stage(file);
  EXPECT_NE(stage(other), staged);
  EXPECT_EQ(bytes_of(staged), bytes_of(file)) << "the second must not push the first out";
}

TEST_F(Staging, DamagedCopyIsMadeAnew) {
  const std::string file = broken("sound");
  const std::string staged = stage(file);
  chmod(staged.c_str(), 0700);
  write_bytes(staged, std::vector<std::byte>(10));
  EXPECT_EQ(stage(file), staged);
  EXPECT_EQ(bytes_of(staged), bytes_of(file));
}

TEST_F(Staging, CopyThatOthersMayWriteIsMadeAnew) {
  const std::string file = broken("sound");
  const std::string staged = stage(file);
  chmod(staged.c_str(), 0777);
  EXPECT_EQ(stage(file), staged);
  struct stat status {};
  ASSERT_EQ(stat(staged.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0500u);
}

TEST_F(Staging, LinkInPlaceOfACopyIsReplaced) {
  const std::string file = broken("sound");
  const std::string staged = stage(file);
  fs::remove(staged);
  fs::create_symlink(file, staged);
  EXPECT_EQ(stage(file), staged);
  EXPECT_FALSE(fs::is_symlink(staged));
}

TEST_F(Staging, BringsWhatOriginNames) {
  const std::string file = broken("private_dependency");
  fs::create_directory(folder.file("plugins/lib"));
  fs::copy_file(std::string(CIUIC_BROKEN_PLUGINS) + "/lib/libciuic_test_dependency.so",
                folder.file("plugins/lib/libciuic_test_dependency.so"));
  const Bundle b = bundle(file);
  ASSERT_EQ(b.dependencies.size(), 1u);
  EXPECT_EQ(b.dependencies[0].relative, "lib/libciuic_test_dependency.so");
  EXPECT_NE(b.digest, sha256(bytes_of(file))) << "another dependency is another bundle";
  const std::string staged = stage(file);
  fs::remove_all(folder.file("plugins"));
  void* handle = dlopen(staged.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
}

TEST_F(Staging, LargeDependencyStaysInPlace) {
  const std::string file = broken("private_dependency");
  fs::create_directory(folder.file("plugins/lib"));
  const std::string large = folder.file("plugins/lib/libciuic_test_dependency.so");
  fs::copy_file(std::string(CIUIC_BROKEN_PLUGINS) + "/lib/libciuic_test_dependency.so", large);
  fs::resize_file(large, size_t{65} << 20);  // a hole at its end: the loader does not mind
  const std::string staged = stage(file);
  const fs::path link = fs::path(staged).parent_path() / "lib/libciuic_test_dependency.so";
  EXPECT_EQ(fs::read_symlink(link), large);
  EXPECT_NE(dlopen(staged.c_str(), RTLD_NOW | RTLD_LOCAL), nullptr);
}

TEST_F(Staging, OldCopiesGoAndRecentOnesStay) {
  const std::string old_copy = fs::path(stage(broken("sound"))).parent_path();
  const std::string new_copy = fs::path(stage(broken("lying_note"))).parent_path();
  fs::last_write_time(old_copy, fs::file_time_type::clock::now() - std::chrono::hours(48));
  area.remove_old(0);
  EXPECT_FALSE(fs::exists(old_copy));
  EXPECT_TRUE(fs::exists(new_copy));
}

TEST_F(Staging, CopiesStayWhileThereIsRoom) {
  const std::string copy = fs::path(stage(broken("sound"))).parent_path();
  fs::last_write_time(copy, fs::file_time_type::clock::now() - std::chrono::hours(48));
  area.remove_old(size_t{1} << 30);
  EXPECT_TRUE(fs::exists(copy));
}

TEST_F(Staging, PrivateFolderIsNotSomebodyElses) {
  const std::string path = folder.file("open");
  fs::create_directory(path);
  chmod(path.c_str(), 0777);
  EXPECT_TRUE(make_private_folder(path)) << "ours: it is made private";
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  fs::create_directory_symlink(path, folder.file("link"));
  EXPECT_FALSE(make_private_folder(folder.file("link")));
}

}  // namespace
}  // namespace ciuic::core
