// SPDX-License-Identifier: MIT
#include "core/bench/copy_rate.h"

#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "core/bench/mapped_memory.h"
#include "core/bench/median.h"
#include "core/train/stopwatch.h"

namespace ciuic::core {
namespace {

constexpr size_t kBytes = size_t{128} << 20;
constexpr int64_t kGrain = int64_t{1} << 20;

/// By the threads that will read it. Untouched pages would all be one page of zeros.
void touch(const MappedMemory& memory) {
  at::parallel_for(0, static_cast<int64_t>(kBytes), kGrain, [&](int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(memory.data()) + begin, 1, static_cast<size_t>(end - begin));
  });
}

void copy(const MappedMemory& from, const MappedMemory& to) {
  at::parallel_for(0, static_cast<int64_t>(kBytes), kGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to.data()) + begin,
                static_cast<const char*>(from.data()) + begin, static_cast<size_t>(end - begin));
  });
}

}  // namespace

double measure_copy_rate() {
  const MappedMemory from(kBytes);
  const MappedMemory to(kBytes);
  touch(from);
  copy(from, to);
  std::vector<double> seconds(5);
  for (double& s : seconds) {
    const auto begin = std::chrono::steady_clock::now();
    copy(from, to);
    s = seconds_since(begin);
  }
  return 2.0 * static_cast<double>(kBytes) / median(std::move(seconds));
}

}  // namespace ciuic::core
