// SPDX-License-Identifier: MIT
//
// What lies behind "ciuic.io" in tests: a store of files and folders. MemoryFiles can lose what was
// not synced, DiskFiles is a real disk; both throw Error with the codes that services.h names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <ciuic/error.hpp>

namespace ciuic::testing {

/// Any thread.
class FileStore {
 public:
  /// An open file.
  class File {
   public:
    virtual ~File() = default;
    virtual void read(uint64_t offset, char* into, size_t bytes) = 0;
    virtual void write(uint64_t offset, const char* from, size_t bytes) = 0;
    virtual uint64_t size() = 0;
    virtual void sync() = 0;
  };

  virtual ~FileStore() = default;
  virtual std::unique_ptr<File> open(const std::string& path, uint32_t flags) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& path, bool is_recursive) = 0;
  virtual void make_directory(const std::string& path) = 0;
  virtual void sync_directory(const std::string& path) = 0;
  /// Sorted by name.
  virtual void list(const std::string& path,
                    const std::function<void(const std::string&, uint64_t bytes)>& each) = 0;
  virtual uint64_t space(const std::string& path) = 0;
};

/// Throws INVALID for what can be no path.
inline void check_path(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) {
    throw Error(CIUIC_INVALID, path.empty() ? "a path is empty" : "a path holds a NUL byte");
  }
}

}  // namespace ciuic::testing
