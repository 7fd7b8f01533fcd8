// SPDX-License-Identifier: MIT
#include "core/bench/storage_counter.h"

#include <atomic>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace ciuic::core {
namespace {

/// In front of the allocator that was there. LibTorch wants the data's address as the context, so
/// that a block carries nothing more than the inner allocator gave it, and any thread may free it.
class StorageCounter final : public c10::Allocator {
 public:
  static StorageCounter& only() {
    static auto* counter = new StorageCounter();  // blocks outlive every scope
    return *counter;
  }
  [[nodiscard]] MemoryCounts counts() const { return {allocations_, bytes_, frees_}; }

  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr block = inner_->allocate(bytes);
    void* data = block.release_context();
    if (data != nullptr) {
      ++allocations_;
      bytes_ += static_cast<int64_t>(bytes);
    }
    return {data, data, &StorageCounter::release, block.device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &StorageCounter::release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }

 private:
  static void release(void* data) {
    if (data != nullptr) {
      ++only().frees_;
      only().release_(data);
    }
  }

  c10::Allocator* const inner_ = c10::GetCPUAllocator();
  const c10::DeleterFnPtr release_ = inner_->raw_deleter();
  std::atomic<int64_t> allocations_{0}, bytes_{0}, frees_{0};
};

std::atomic<bool> is_counting{false};

}  // namespace

void count_storage() {
  constexpr uint8_t kAboveTheDefault = 1;
  if (!is_counting.exchange(true)) {
    c10::SetCPUAllocator(&StorageCounter::only(), kAboveTheDefault);
  }
}

MemoryCounts storage_counts() {
  return is_counting ? StorageCounter::only().counts() : MemoryCounts{};
}

}  // namespace ciuic::core
