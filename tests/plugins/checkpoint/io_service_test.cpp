// SPDX-License-Identifier: MIT
#include "core/plugin/io_service.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "checkpoint_host.h"

namespace ciuic::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class IoServiceTest : public ::testing::Test {
 protected:
  ciuic_file* open(const std::string& path, uint32_t flags) {
    ciuic_file* file = nullptr;
    host_.check(io_.table().open(io_.table().ctx, to_str(path), flags, &file));
    return file;
  }
  void check(ciuic_status* status) { host_.check(status); }

  Cluster cluster_{"sharded"};  // for its host table
  Host host_ = cluster_.rank(0).host();
  core::IoService io_{host_.table()};
  const ciuic_io_service& t_ = io_.table();
  TemporaryFolder folder_;
};

TEST_F(IoServiceTest, WritesAndReadsAtOffsets) {
  ciuic_file* file = open(folder_ / "f", CIUIC_IO_CREATE | CIUIC_IO_DIRECT);
  check(t_.write(t_.ctx, file, 3, "abc", 3));
  check(t_.sync(t_.ctx, file));
  uint64_t bytes = 0;
  check(t_.size(t_.ctx, file, &bytes));
  EXPECT_EQ(bytes, 6U);
  char text[4] = {};
  check(t_.read(t_.ctx, file, 3, text, 3));
  EXPECT_STREQ(text, "abc");
  const auto error =
      expect_error(CIUIC_DATA_LOSS, [&] { check(t_.read(t_.ctx, file, 4, text, 3)); });
  EXPECT_THAT(error.what(), HasSubstr("wanted 3 bytes at offset 4, the file ends after 2"));
  expect_error(CIUIC_DATA_LOSS, [&] { check(t_.read(t_.ctx, file, UINT64_MAX, text, 3)); });
  t_.close(t_.ctx, file);
  EXPECT_EQ(read_file(folder_ / "f"), std::string("\0\0\0abc", 6));
}

TEST_F(IoServiceTest, ErrorsNamePathAndErrno) {
  const auto open_error = [&](int32_t code, const std::string& path, uint32_t flags) {
    return std::string(expect_error(code, [&] { (void)open(path, flags); }).what());
  };
  EXPECT_THAT(open_error(CIUIC_NOT_FOUND, folder_ / "none", CIUIC_IO_READ),
              HasSubstr("none: No such file or directory (errno 2)"));
  write_file(folder_ / "f", "x");
  EXPECT_THAT(open_error(CIUIC_EXISTS, folder_ / "f", CIUIC_IO_CREATE),
              HasSubstr("f: File exists (errno 17)"));
  open_error(CIUIC_NOT_FOUND, folder_ / "f/below", CIUIC_IO_READ);
  open_error(CIUIC_DATA_LOSS, folder_.path(), CIUIC_IO_READ);
  open_error(CIUIC_INVALID, "", CIUIC_IO_READ);
  open_error(CIUIC_INVALID, folder_ / std::string("a\0b", 3), CIUIC_IO_CREATE);
  open_error(CIUIC_INVALID, folder_ / "f", 0);
  open_error(CIUIC_PERMISSION, "/sys/ciuic", CIUIC_IO_CREATE);  // for root too
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(open_error(CIUIC_DATA_LOSS, folder_ / "pipe", CIUIC_IO_READ),
              HasSubstr("no regular file"));
  EXPECT_THAT(open_error(CIUIC_DATA_LOSS, folder_ / std::string(300, 'x'), CIUIC_IO_CREATE),
              HasSubstr("(errno 36)"));
}

TEST_F(IoServiceTest, AWriteThatTheSystemRefusesNamesTheFile) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small{100, old.rlim_max};
  auto* const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  ciuic_file* file = open(folder_ / "f", CIUIC_IO_CREATE);
  const std::string data(101, 'x');  // a short write first, then the error
  const auto error = expect_error(
      CIUIC_DATA_LOSS, [&] { check(t_.write(t_.ctx, file, 0, data.data(), data.size())); });
  t_.close(t_.ctx, file);
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(error.what(), HasSubstr("write " + (folder_ / "f") + ": File too large (errno 27)"));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "f"), 100U);
}

TEST_F(IoServiceTest, FilesAreNotInheritedByChildren) {
  const std::string path = folder_ / "f";
  ciuic_file* file = open(path, CIUIC_IO_CREATE);
  int checked = 0;
  for (int d = 0; d < 1024; ++d) {
    std::error_code error;
    if (std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(d), error) == path) {
      EXPECT_EQ(::fcntl(d, F_GETFD), FD_CLOEXEC);
      ++checked;
    }
  }
  EXPECT_EQ(checked, 1);
  t_.close(t_.ctx, file);
}

TEST_F(IoServiceTest, DirectoriesAreMadeListedSyncedAndRemoved) {
  const std::string deep = folder_ / "a/b//c/";
  check(t_.make_directory(t_.ctx, to_str(deep)));
  check(t_.make_directory(t_.ctx, to_str(deep)));
  check(t_.sync_directory(t_.ctx, to_str(deep)));
  write_file(folder_ / "a/z", "12345");
  write_file(folder_ / "a/c", "1");
  std::vector<std::pair<std::string, uint64_t>> found;
  const std::string a = folder_ / "a";
  check(t_.list(
      t_.ctx, to_str(a),
      [](void* context, ciuic_str name, uint64_t bytes) {
        static_cast<std::vector<std::pair<std::string, uint64_t>>*>(context)->emplace_back(
            to_view(name), bytes);
      },
      &found));
  EXPECT_THAT(found, ElementsAre(Pair("b", 0), Pair("c", 1), Pair("z", 5)));
  const std::string file = folder_ / "a/z";
  expect_error(CIUIC_EXISTS, [&] { check(t_.make_directory(t_.ctx, to_str(file))); });
  expect_error(CIUIC_NOT_FOUND, [&] { check(t_.list(t_.ctx, to_str(file), nullptr, nullptr)); });
  expect_error(CIUIC_EXISTS, [&] { check(t_.remove(t_.ctx, to_str(a), 0)); });
  check(t_.remove(t_.ctx, to_str(file), 0));
  expect_error(CIUIC_NOT_FOUND, [&] { check(t_.remove(t_.ctx, to_str(file), 0)); });
  check(t_.remove(t_.ctx, to_str(a), 1));
  expect_error(CIUIC_NOT_FOUND, [&] { check(t_.remove(t_.ctx, to_str(a), 1)); });
}

TEST_F(IoServiceTest, RecursiveRemoveDoesNotFollowLinks) {
  std::filesystem::create_directories(folder_ / "keep");
  write_file(folder_ / "keep/f", "x");
  std::filesystem::create_directories(folder_ / "gone");
  std::filesystem::create_directory_symlink(folder_ / "keep", folder_ / "gone/link");
  const std::string gone = folder_ / "gone";
  check(t_.remove(t_.ctx, to_str(gone), 1));
  EXPECT_THAT(tree(folder_.path()), ElementsAre("keep", "keep/f"));
}

TEST_F(IoServiceTest, RenameReplaces) {
  const std::string a = folder_ / "a";
  const std::string b = folder_ / "b";
  write_file(a, "new");
  write_file(b, "old");
  check(t_.rename(t_.ctx, to_str(a), to_str(b)));
  EXPECT_EQ(read_file(b), "new");
  EXPECT_THAT(
      expect_error(CIUIC_NOT_FOUND, [&] { check(t_.rename(t_.ctx, to_str(a), to_str(b))); }).what(),
      HasSubstr("rename " + a + " to " + b));
}

TEST_F(IoServiceTest, SpaceOfWhatIsNotThereIsThatOfItsParent) {
  uint64_t bytes = 0;
  const std::string deep = folder_ / "not/there/yet";
  check(t_.space(t_.ctx, to_str(deep), &bytes));
  EXPECT_GT(bytes, 0U);
}

}  // namespace
}  // namespace ciuic::test
