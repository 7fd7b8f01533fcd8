// SPDX-License-Identifier: MIT
//
// The "ciuic.io" service as objects, and the path arithmetic of write-aside saves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ciuic/host.hpp>

namespace ciuic::plugins::checkpoint {

/// An open file; closes itself. Every function throws what the service says, which names the path.
class File final {
 public:
  File() = default;
  File(const Host& host, const ciuic_io_service& io, std::string path, uint32_t flags);
  File(File&& o) noexcept
      : host_(o.host_),
        io_(o.io_),
        path_(std::move(o.path_)),
        file_(std::exchange(o.file_, nullptr)) {}
  File& operator=(File&& o) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  [[nodiscard]] bool is_open() const noexcept { return file_ != nullptr; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] uint64_t size() const;
  void read(uint64_t offset, void* into, size_t bytes) const;
  void write(uint64_t offset, const void* from, size_t bytes) const;
  void sync() const;

 private:
  Host host_;
  const ciuic_io_service* io_ = nullptr;
  std::string path_;
  ciuic_file* file_ = nullptr;
};

struct Listed {
  std::string name;
  uint64_t bytes;
};

class Files final {
 public:
  /// Throws PRECONDITION when the host offers no file access.
  explicit Files(const Host& host);

  [[nodiscard]] File open(const std::string& path) const {
    return {host_, *io_, path, CIUIC_IO_READ};
  }
  [[nodiscard]] File create(const std::string& path) const {
    return {host_, *io_, path, CIUIC_IO_CREATE};
  }
  /// The whole file. DATA_LOSS when it is longer than `limit`.
  [[nodiscard]] std::string read_all(const std::string& path, uint64_t limit) const;
  /// A new file, synced.
  void write_new(const std::string& path, std::string_view bytes) const;

  void rename(const std::string& from, const std::string& to) const;
  void remove(const std::string& path, bool is_recursive) const;
  /// As remove; false when nothing is there.
  bool remove_if_there(const std::string& path, bool is_recursive) const;
  void make_directory(const std::string& path) const;
  void sync_directory(const std::string& path) const;
  [[nodiscard]] std::vector<Listed> list(const std::string& path) const;
  [[nodiscard]] uint64_t free_bytes(const std::string& path) const;

  enum class Found { Nothing, File, Folder };
  /// What lies at path; `listing` is filled for a folder.
  [[nodiscard]] Found look(const std::string& path, std::vector<Listed>& listing) const;

 private:
  Host host_;
  const ciuic_io_service* io_;
};

/// Appends to a file through a buffer, so that a thousand small tensors are a few writes.
class SequentialWriter final {
 public:
  SequentialWriter(const File& file, uint64_t offset) : file_(file), offset_(offset) {}
  void append(const void* data, size_t bytes);
  /// Nothing is written for sure before this.
  void flush();

 private:
  const File& file_;
  uint64_t offset_;
  std::string buffer_;
};

/// A checkpoint's place as a plain path: without trailing slashes. INVALID: empty, "/", or a NUL in
/// it; UNIMPLEMENTED: it has a scheme such as s3://.
[[nodiscard]] std::string path_of_uri(std::string_view uri);
[[nodiscard]] std::string parent_of(const std::string& path);
[[nodiscard]] std::string join(const std::string& folder, std::string_view name);
/// Where a save lies until its commit.
[[nodiscard]] std::string partial_of(const std::string& path);
/// May this name, read from a file, be used as the name of a file in the same folder?
[[nodiscard]] bool is_plain_name(std::string_view name);
/// EXHAUSTED, naming both numbers, when fewer than `needed` bytes are free where `path` will be.
void check_space(const Files& files, const std::string& path, uint64_t needed);

}  // namespace ciuic::plugins::checkpoint
