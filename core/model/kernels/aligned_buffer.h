// SPDX-License-Identifier: MIT
#pragma once

// Working memory of one thread: grows to what was ever asked for, aligned for any vector, never
// cleared.

#include <cstdint>
#include <memory>
#include <new>

namespace ciuic::core::kernels {

template <typename T>
class AlignedBuffer final {
 public:
  /// At least `size` elements, whose content is open.
  T* reserve(int64_t size) {
    if (size > size_) {
      data_.reset(
          static_cast<T*>(::operator new(static_cast<size_t>(size) * sizeof(T), kAlignment)));
      size_ = size;
    }
    return data_.get();
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t size_ = 0;
};

}  // namespace ciuic::core::kernels
