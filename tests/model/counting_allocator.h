// SPDX-License-Identifier: MIT
#pragma once

// A CPU allocator for LibTorch that counts the bytes which live now, and lived at most.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace ciuic::core::testing {

class CountingAllocator final : public c10::Allocator {
 public:
  /// In the place of LibTorch's for the rest of the process.
  static CountingAllocator& installed() {
    static CountingAllocator* allocator = [] {
      auto* made = new CountingAllocator();
      c10::SetCPUAllocator(made, /*priority=*/1);
      return made;
    }();
    return *allocator;
  }

  [[nodiscard]] int64_t live() const { return live_; }
  [[nodiscard]] int64_t peak() const { return peak_; }
  void reset_peak() { peak_ = live_.load(); }

  c10::DataPtr allocate(size_t bytes) override {
    // LibTorch wants the data's address as the context, so the size stands in front of it.
    auto* header = static_cast<std::byte*>(::operator new(bytes + kAlignment, kAligned));
    new (header) Header{static_cast<int64_t>(bytes)};
    live_ += static_cast<int64_t>(bytes);
    peak_ = std::max(peak_.load(), live_.load());
    std::byte* data = header + kAlignment;
    return {data, data, &CountingAllocator::release, at::Device(at::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &CountingAllocator::release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  struct Header {
    int64_t bytes;
  };
  static constexpr size_t kAlignment = 64;
  static constexpr std::align_val_t kAligned{kAlignment};

  static void release(void* data) {
    if (data == nullptr) {
      return;
    }
    std::byte* header = static_cast<std::byte*>(data) - kAlignment;
    installed().live_ -= reinterpret_cast<Header*>(header)->bytes;
    ::operator delete(header, kAligned);
  }

  std::atomic<int64_t> live_{0}, peak_{0};
};

}  // namespace ciuic::core::testing
