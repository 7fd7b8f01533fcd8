// SPDX-License-Identifier: MIT
#include "core/bench/gemm_rate.h"

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

TEST(GemmRate, TheMiddleIsNeitherTheLargestNorTheSmallest) {
  GemmRate rate;
  rate.flops_per_second = {3e9, 1e9, 2e9};
  EXPECT_EQ(rate.middle(), 2e9);
}

TEST(GemmRate, IsThatOfAProcessor) {
  const GemmRate rate = measure_gemm_rate(at::kFloat);
  for (const double flops : rate.flops_per_second) {
    EXPECT_GT(flops, 1e8);   // less: an emulator, or a clock that is wrong
    EXPECT_LT(flops, 1e15);  // more: nothing was computed
  }
}

}  // namespace
}  // namespace ciuic::core
