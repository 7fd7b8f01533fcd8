// SPDX-License-Identifier: MIT
#include "core/train/host_statistics.h"

#include <cmath>

// One copy per vector width, chosen when the program is loaded; double adds as fast as memory reads
// only in wide vectors. Sanitizers run before the resolvers that choose a copy: they get the plain
// one.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CIUIC_CLONES_FOR(...) __attribute__((target_clones(__VA_ARGS__, "default")))
#else
#define CIUIC_CLONES_FOR(...)
#endif

namespace ciuic::core {
namespace {

// A product of two floats is exact in double, so fused multiply-adds give the same bits.
CIUIC_CLONES_FOR("avx512f", "avx2")
double sum_of_squares(const float* x, int64_t count) {
  constexpr int64_t kLanes = 16;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const double v = x[i + k];
      lanes[k] += v * v;
    }
  }
  double sum = 0;
  for (const double lane : lanes) {
    sum += lane;
  }
  for (; i < count; ++i) {
    sum += static_cast<double>(x[i]) * x[i];
  }
  return sum;
}

}  // namespace

void add_statistics(const float* x, int64_t count, double* out) {
  const double sum = sum_of_squares(x, count);
  out[0] += sum;
  // A float squared cannot overflow a double, so the sum is finite exactly when every element is.
  if (!std::isfinite(sum)) {
    for (int64_t i = 0; i < count; ++i) {
      out[1] += std::isfinite(x[i]) ? 0 : 1;
    }
  }
}

}  // namespace ciuic::core
