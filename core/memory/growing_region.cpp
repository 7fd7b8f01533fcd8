// SPDX-License-Identifier: MIT
#include "core/memory/growing_region.h"

#include <algorithm>

#include <sys/mman.h>

namespace ciuic::core {
namespace {

constexpr size_t kStep = size_t{4} << 20;           // grown at a time, at least
constexpr size_t kLeastReserved = size_t{64} << 20;  // not worth having below

}  // namespace

GrowingRegion::GrowingRegion(size_t bytes) {
  for (; bytes >= kLeastReserved && begin_ == nullptr; bytes /= 2) {
    void* data = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data != MAP_FAILED) {
      begin_ = static_cast<std::byte*>(data);
      reserved_ = bytes;
    }
  }
}

GrowingRegion::~GrowingRegion() {
  if (begin_ != nullptr) {
    munmap(begin_, reserved_);
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
  size_ += more;
  return more;
}

}  // namespace ciuic::core
