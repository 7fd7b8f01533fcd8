// SPDX-License-Identifier: MIT
//
// A file descriptor that closes itself, and whole files through it. All calls go on after EINTR.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ciuic::core {

class OpenFile {
 public:
  explicit OpenFile(int fd = -1) noexcept : fd_(fd) {}
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OpenFile();

  [[nodiscard]] int fd() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void close() noexcept;

  /// The whole file, at most `limit` bytes. Nothing: an error (in errno), or more than that
  /// (EFBIG).
  [[nodiscard]] std::optional<std::vector<std::byte>> read_all(size_t limit) const;
  /// False: an error, in errno.
  [[nodiscard]] bool write_all(std::span<const std::byte> bytes) const;

 private:
  int fd_;
};

/// The whole file as text; nothing when it is not there, cannot be read or is longer than `limit`.
std::optional<std::string> read_text(const std::string& path, size_t limit);

/// Replaces a file by one of this text: written beside it, then renamed. False: an error, in errno.
bool replace_text(const std::string& path, const std::string& text);

}  // namespace ciuic::core
