// SPDX-License-Identifier: MIT
#include "core/train/bad_pass.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

/// The outcome of a vote in which rank r says micro_batches[r]; -1: none.
std::optional<BadPass> election(const std::vector<int64_t>& micro_batches) {
  const int world = static_cast<int>(micro_batches.size());
  double maximum = 0;
  for (int rank = 0; rank < world; ++rank) {
    const int64_t mine = micro_batches[static_cast<size_t>(rank)];
    const std::optional<BadPass> pass =
        mine < 0 ? std::nullopt : std::optional(BadPass{rank, static_cast<uint32_t>(mine)});
    maximum = std::max(maximum, BadPass::vote(pass, world));
  }
  return BadPass::elected(maximum, world);
}

TEST(BadPass, LowestRankIsElectedWithItsMicroBatch) {
  EXPECT_FALSE(election({-1, -1, -1}));
  for (const auto& [votes, rank, micro_batch] :
       std::vector<std::tuple<std::vector<int64_t>, int, uint32_t>>{{{0}, 0, 0},
                                                                    {{-1, 0}, 1, 0},
                                                                    {{-1, 7, 2}, 1, 7},
                                                                    {{3, 0, 0}, 0, 3},
                                                                    {{-1, -1, 511}, 2, 511}}) {
    const auto pass = election(votes);
    ASSERT_TRUE(pass);
    EXPECT_EQ(pass->rank, rank);
    EXPECT_EQ(pass->micro_batch, micro_batch);
  }
}

TEST(BadPass, OneBadElementIsFoundInEveryType) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    at::Tensor x = at::zeros({3, 5}, type);
    x.fill_(6e4);  // near the end of fp16's range
    EXPECT_TRUE(is_finite(x)) << type;
    EXPECT_TRUE(is_finite(x.t())) << type;
    for (const double bad : {std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(), std::nan("")}) {
      at::Tensor y = x.clone();
      y[2][4] = bad;
      EXPECT_FALSE(is_finite(y)) << type << " " << bad;
      EXPECT_FALSE(is_finite(y.t())) << type << " " << bad;
    }
  }
}

}  // namespace
}  // namespace ciuic::core
