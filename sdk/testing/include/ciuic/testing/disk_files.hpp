// SPDX-License-Identifier: MIT
//
// A FileStore that is the real disk.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/testing/file_store.hpp>

namespace ciuic::testing {

class DiskFiles final : public FileStore {
 public:
  std::unique_ptr<File> open(const std::string& path, uint32_t flags) override {
    check_path(path);
    const int mode = (flags & CIUIC_IO_CREATE) != 0 ? O_RDWR | O_CREAT | O_EXCL : O_RDONLY;
    const int descriptor = ::open(path.c_str(), mode | O_CLOEXEC | O_NONBLOCK, 0666);
    struct stat info {};
    if (descriptor < 0) {
      fail("open", path, errno);
    }
    if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
      ::close(descriptor);
      throw Error(CIUIC_DATA_LOSS, "open " + path + ": this is no regular file");
    }
    return std::make_unique<Open>(descriptor, path);
  }
  void rename(const std::string& from, const std::string& to) override {
    check_path(from);
    check_path(to);
    if (::rename(from.c_str(), to.c_str()) != 0) {
      fail("rename", from + " to " + to, errno);
    }
  }
  void remove(const std::string& path, bool is_recursive) override {
    check_path(path);
    if (!is_recursive) {
      if (::remove(path.c_str()) != 0) {
        fail("remove", path, errno);
      }
      return;
    }
    std::error_code error;
    const auto count = std::filesystem::remove_all(path, error);
    if (error || count == 0) {
      fail("remove", path, error ? error.value() : ENOENT);
    }
  }
  void make_directory(const std::string& path) override {
    check_path(path);
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) {
      fail("make directory", path, error.value());
    }
  }
  void sync_directory(const std::string& path) override {
    check_path(path);
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) {
      fail("sync directory", path, errno);
    }
    Open(descriptor, path).sync();
  }
  void list(const std::string& path,
            const std::function<void(const std::string&, uint64_t)>& each) override {
    check_path(path);
    std::error_code error;
    std::vector<std::pair<std::string, uint64_t>> found;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      std::error_code ignored;
      found.emplace_back(entry.path().filename().string(),
                         entry.is_regular_file(ignored) ? entry.file_size(ignored) : 0);
    }
    if (error) {
      fail("list", path, error.value());
    }
    std::sort(found.begin(), found.end());
    for (const auto& [name, bytes] : found) {
      each(name, bytes);
    }
  }
  uint64_t space(const std::string& path) override {
    check_path(path);
    struct statvfs info {};
    std::filesystem::path at = path;
    while (::statvfs(at.c_str(), &info) != 0) {
      if (errno != ENOENT || !at.has_relative_path()) {
        fail("free space of", path, errno);
      }
      at = at.parent_path().empty() ? "." : at.parent_path();
    }
    return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  }

 private:
  [[noreturn]] static void fail(const char* what, const std::string& path, int error) {
    int32_t code = CIUIC_DATA_LOSS;
    if (error == ENOENT || error == ENOTDIR) {
      code = CIUIC_NOT_FOUND;
    } else if (error == EEXIST || error == ENOTEMPTY) {
      code = CIUIC_EXISTS;
    } else if (error == EACCES || error == EPERM || error == EROFS) {
      code = CIUIC_PERMISSION;
    } else if (error == ENOSPC || error == EDQUOT) {
      code = CIUIC_EXHAUSTED;
    }
    throw Error(code, std::string(what) + " " + path + ": " + std::strerror(error));
  }

  class Open final : public File {
   public:
    Open(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    ~Open() override { ::close(descriptor_); }
    void read(uint64_t offset, char* into, size_t bytes) override {
      move(bytes, "read", [&](size_t done) {
        return ::pread(descriptor_, into + done, bytes - done, static_cast<off_t>(offset + done));
      });
    }
    void write(uint64_t offset, const char* from, size_t bytes) override {
      move(bytes, "write", [&](size_t done) {
        return ::pwrite(descriptor_, from + done, bytes - done, static_cast<off_t>(offset + done));
      });
    }
    uint64_t size() override {
      struct stat info {};
      if (::fstat(descriptor_, &info) != 0) {
        fail("stat", path_, errno);
      }
      return static_cast<uint64_t>(info.st_size);
    }
    void sync() override {
      if (::fsync(descriptor_) != 0) {
        fail("sync", path_, errno);
      }
    }

   private:
    template <typename Step>
    void move(size_t bytes, const char* what, Step&& step) {
      for (size_t done = 0; done < bytes;) {
        const ssize_t n = step(done);
        if (n == 0) {
          throw Error(CIUIC_DATA_LOSS, std::string(what) + " " + path_ + ": the file ends");
        }
        if (n < 0 && errno != EINTR) {
          fail(what, path_, errno);
        }
        done += n > 0 ? static_cast<size_t>(n) : 0;
      }
    }
    int descriptor_;
    std::string path_;
  };
};

}  // namespace ciuic::testing
