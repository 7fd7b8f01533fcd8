// SPDX-License-Identifier: MIT
//
// A struct at the very end of a page, with a page behind it that may not be touched: a plugin that
// reads or writes past the struct it was handed faults at once, in the function that did it.
//
//   GuardedStruct<ciuic_step> step(c_step);       // a copy
//   GuardedStruct<ciuic_grad_stats> stats;        // an out-struct: struct_size set, the rest 0
//   table.grad_stats(self, request.get(), nullptr, stats.get());
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <type_traits>
#include <unistd.h>
#include <vector>

#include <ciuic/abi/types.h>

namespace ciuic::testing {

/// Bytes that end where an inaccessible page begins.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t usable = (bytes + page - 1) / page * page;
    mapped_ = usable + page;
    void* memory =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::bad_alloc();
    }
    begin_ = static_cast<char*>(memory);
    mprotect(begin_ + usable, page, PROT_NONE);
    data_ = begin_ + usable - bytes;
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(begin_, mapped_); }

  [[nodiscard]] char* data() const noexcept { return data_; }
  [[nodiscard]] size_t size() const noexcept { return bytes_; }
  /// From now on nobody may read or write it: the call that it was for has returned.
  void forbid() const noexcept { mprotect(begin_, mapped_, PROT_NONE); }

 private:
  size_t bytes_;
  size_t mapped_ = 0;
  char* begin_ = nullptr;
  char* data_ = nullptr;
};

/// One struct of the ABI that begins with struct_size.
template <typename T>
class GuardedStruct {
  static_assert(std::is_trivially_copyable_v<T>, "a struct of the C ABI");

 public:
  /// As a caller prepares an out-struct.
  GuardedStruct() : bytes_(sizeof(T)) {
    const uint32_t size = sizeof(T);
    std::memcpy(bytes_.data(), &size, sizeof(size));
  }
  explicit GuardedStruct(const T& value) : bytes_(sizeof(T)) {
    std::memcpy(bytes_.data(), &value, sizeof(T));
  }

  [[nodiscard]] T* get() const noexcept { return reinterpret_cast<T*>(bytes_.data()); }
  T* operator->() const noexcept { return get(); }
  T& operator*() const noexcept { return *get(); }
  void forbid() const noexcept { bytes_.forbid(); }

 private:
  GuardedBytes bytes_;
};

/// An array of the ABI: the last element ends at the page's end. `extra` bytes after each element
/// are as a newer host's longer structs look to the plugin: the stride says so.
template <typename T>
class GuardedArray {
 public:
  explicit GuardedArray(const std::vector<T>& values, uint32_t extra = 0)
      : stride_(static_cast<uint32_t>(sizeof(T)) + extra),
        count_(static_cast<uint32_t>(values.size())),
        bytes_(values.size() * stride_) {
    for (size_t i = 0; i < values.size(); ++i) {
      std::memcpy(bytes_.data() + i * stride_, &values[i], sizeof(T));
    }
  }

  [[nodiscard]] ciuic_array c() const noexcept { return {bytes_.data(), count_, stride_}; }
  void forbid() const noexcept { bytes_.forbid(); }

 private:
  uint32_t stride_;
  uint32_t count_;
  GuardedBytes bytes_;
};

}  // namespace ciuic::testing
