// SPDX-License-Identifier: MIT
#include "core/memory/growing_region.h"

#include <algorithm>
#include <cstdint>
#include <sys/mman.h>

namespace ciuic::core {
namespace {

constexpr size_t kStep = size_t{4} << 20;            // grown at a time, at least
constexpr size_t kLeastReserved = size_t{64} << 20;  // not worth having below
constexpr size_t kHugePage = size_t{2} << 20;
// From here on pages are huge: a small model would wait longer for them to be made than it gains.
constexpr size_t kOnSmallPages = size_t{64} << 20;

std::byte* aligned(void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return reinterpret_cast<std::byte*>((address + kHugePage - 1) / kHugePage * kHugePage);
}

}  // namespace

GrowingRegion::GrowingRegion(size_t bytes) {
  for (; bytes >= kLeastReserved && begin_ == nullptr; bytes /= 2) {
    mapped_bytes_ = bytes + kHugePage;
    mapped_ =
        mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped_ != MAP_FAILED) {
      begin_ = aligned(mapped_);
      reserved_ = bytes;
    }
  }
}

GrowingRegion::~GrowingRegion() {
  if (begin_ != nullptr) {
    munmap(mapped_, mapped_bytes_);
  }
}

size_t GrowingRegion::grow(size_t bytes) {
  const size_t left = reserved_ - size_;
  if (bytes > left) {
    return 0;
  }
  const size_t more = std::min(left, (bytes + kStep - 1) / kStep * kStep);
  if (mprotect(begin_ + size_, more, PROT_READ | PROT_WRITE) != 0) {
    return 0;
  }
  if (size_ >= kOnSmallPages) {
    madvise(begin_ + size_, more, MADV_HUGEPAGE);  // a wish: where there are none, small ones serve
  }
  size_ += more;
  return more;
}

}  // namespace ciuic::core
