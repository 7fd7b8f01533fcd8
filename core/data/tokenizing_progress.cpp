// SPDX-License-Identifier: MIT
#include "core/data/tokenizing_progress.h"

#include <algorithm>
#include <cstdio>

namespace ciuic::core {

std::string TokenizingProgress::text(int64_t done) const {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const double rate = static_cast<double>(done) / std::max(seconds, 1e-3);
  const double left = static_cast<double>(bytes_ - done) / std::max(rate, 1.0);
  char numbers[96];
  std::snprintf(
      numbers, sizeof(numbers), ": %.0f %%, %.1f MB/s, %.0f s to go",
      100.0 * static_cast<double>(done) / static_cast<double>(std::max<int64_t>(bytes_, 1)),
      rate / 1e6, left);
  return "tokenizing " + what_ + numbers;
}

bool PeriodicNote::is_due() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) {
    return false;
  }
  next_ = now + std::chrono::seconds(10);
  has_spoken_ = true;
  return true;
}

}  // namespace ciuic::core
