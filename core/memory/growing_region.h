// SPDX-License-Identifier: MIT
//
// One stretch of addresses whose memory comes as it grows, so that what was taken from the system
// early and late lies side by side.
#pragma once

#include <cstddef>

namespace ciuic::core {

class GrowingRegion {
 public:
  /// Reserves addresses only. Where `bytes` are not to be had, for example under `ulimit -v`, it takes
  /// what it gets, down to nothing.
  explicit GrowingRegion(size_t bytes);
  ~GrowingRegion();
  GrowingRegion(const GrowingRegion&) = delete;
  GrowingRegion& operator=(const GrowingRegion&) = delete;

  [[nodiscard]] std::byte* begin() const { return begin_; }
  [[nodiscard]] size_t size() const { return size_; }
  /// Makes at least `bytes` more usable behind what there is; returns how many, 0 where the system
  /// has none left.
  size_t grow(size_t bytes);

 private:
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::byte* begin_ = nullptr;  // within, where a huge page may begin
  size_t reserved_ = 0;
  size_t size_ = 0;
};

}  // namespace ciuic::core
