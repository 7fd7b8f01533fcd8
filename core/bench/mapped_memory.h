// SPDX-License-Identifier: MIT
//
// Memory of its own for a measurement: mapped and unmapped, so that it leaves nothing in the heap.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <sys/mman.h>

#include "core/log/failure.h"

namespace ciuic::core {

class MappedMemory {
 public:
  /// Throws Failure (Environment).
  explicit MappedMemory(size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) {
      throw Failure(ExitCode::Environment,
                    "no memory to measure with: " + std::string(std::strerror(errno)));
    }
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory() { munmap(data_, bytes_); }

  [[nodiscard]] void* data() const { return data_; }

 private:
  size_t bytes_;
  void* data_;
};

}  // namespace ciuic::core
