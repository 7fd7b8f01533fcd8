// SPDX-License-Identifier: MIT
//
// Memory without a name that processes of one machine share: a memfd. Its maker tells the others its
// process and descriptor, and they open it below /proc; so nothing is ever in /dev/shm, and the kernel
// frees the memory with its last process, however that ended.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace ciuic::plugins::shm {

/// One mapping. Move-only.
class SharedFile {
 public:
  SharedFile() = default;
  /// Zeroed memory; pages exist once they are touched. Throws EXHAUSTED, UNIMPLEMENTED.
  static SharedFile make(const char* what, size_t bytes);
  /// What another process made and still holds open. Throws UNAVAILABLE.
  static SharedFile open(int pid, int descriptor, size_t bytes);

  SharedFile(SharedFile&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)),
        bytes_(std::exchange(o.bytes_, 0)),
        descriptor_(std::exchange(o.descriptor_, -1)) {}
  SharedFile& operator=(SharedFile&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    std::swap(descriptor_, o.descriptor_);
    return *this;
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile();

  [[nodiscard]] char* data() const { return data_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }
  /// -1 once it is closed: then nobody else can open it, and the mapping stays.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  void close_descriptor();

 private:
  void map(const std::string& what);

  char* data_ = nullptr;
  size_t bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace ciuic::plugins::shm
