// SPDX-License-Identifier: MIT
#pragma once

// Working memory of one thread: grows to what was ever asked for, aligned for any vector, never
// cleared.

#include <cstdint>
#include <memory>
#include <new>

namespace ciuic::core::kernels {

class AlignedBuffer final {
 public:
  /// At least `size` floats, whose content is open.
  float* reserve(int64_t size) {
    if (size > size_) {
      data_.reset(static_cast<float*>(
          ::operator new(static_cast<size_t>(size) * sizeof(float), kAlignment)));
      size_ = size;
    }
    return data_.get();
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(float* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<float, Free> data_;
  int64_t size_ = 0;
};

}  // namespace ciuic::core::kernels
