// SPDX-License-Identifier: MIT
#include "core/train/slots.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

/// The balanced tree over positions [begin, end).
float tree(const std::vector<float>& leaves, size_t begin, size_t end) {
  if (end - begin == 1) {
    return leaves[begin];
  }
  const size_t middle = begin + (end - begin + 1) / 2;
  return tree(leaves, begin, middle) + tree(leaves, middle, end);
}

/// Global micro-batch g has the value `of(g)`; its sum, as `world` ranks place it.
float sum_over(int world, uint32_t micro_batches, const std::function<float(uint32_t)>& of) {
  std::vector<float> leaves(micro_batches * static_cast<uint32_t>(world));
  for (int rank = 0; rank < world; ++rank) {
    const StepSlots slots(true, micro_batches, rank, world);
    EXPECT_EQ(slots.count(), leaves.size());
    for (uint32_t i = 0; i < micro_batches; ++i) {
      leaves[slots.first() + i] =
          of(slots.order()[i] * static_cast<uint32_t>(world) + static_cast<uint32_t>(rank));
    }
  }
  return tree(leaves, 0, leaves.size());
}

TEST(StepSlots, AnyWorldSumsInOneTreeAtEveryWorldSize) {
  // Magnitudes so far apart that nearly every other order rounds to other bits.
  const auto value = [](uint32_t g) {
    return std::ldexp(1.0F + static_cast<float>(g) / 7.0F, static_cast<int>(g * 5 % 23)) *
           (g % 3 == 0 ? -1.0F : 1.0F);
  };
  for (const uint32_t all : {8U, 12U, 16U, 24U, 40U}) {
    const float alone = sum_over(1, all, value);
    EXPECT_EQ(alone, sum_over(2, all / 2, value)) << all;
    EXPECT_EQ(alone, sum_over(4, all / 4, value)) << all;
  }
  float in_sequence = 0;
  for (uint32_t g = 0; g < 40; ++g) {
    in_sequence += value(g);
  }
  EXPECT_NE(in_sequence, sum_over(1, 40, value)) << "the values must tell orders apart";
}

TEST(StepSlots, ByDefaultMicroBatchesComeAsPlanned) {
  const StepSlots slots(false, 3, 2, 4);
  EXPECT_EQ(slots.order(), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(slots.first(), 6U);
  EXPECT_EQ(slots.count(), 12U);
}

TEST(StepSlots, AnyWorldRefusesThreeRanks) {
  EXPECT_THROW(StepSlots(true, 2, 0, 3), Failure);
  EXPECT_NO_THROW(StepSlots(false, 2, 0, 3));
}

TEST(SlotSums, AnyWorldKeepsSlotsApartUntilAllAreHere) {
  SlotSums rank0(true, StepSlots(true, 1, 0, 2));
  SlotSums rank1(true, StepSlots(true, 1, 1, 2));
  rank0.add(0, {1, 10, 0, 0, 0, 0});
  rank1.add(0, {2, 20, 0, 0, 0, 0});
  std::span<double> sums = rank0.values();
  ASSERT_EQ(sums.size(), 2 * SlotSums::kKinds);
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_TRUE(sums[i] == 0 || rank1.values()[i] == 0) << "one rank fills each place";
    sums[i] += rank1.values()[i];
  }
  EXPECT_EQ(rank0.total()[0], 3);
  EXPECT_EQ(rank0.total()[1], 30);
}

/// The loss that a step reports, of the token losses of each micro-batch, on ranks with as many
/// micro-batches each.
double reported(const std::vector<std::vector<double>>& batches, int world) {
  const auto each = static_cast<uint32_t>(batches.size()) / static_cast<uint32_t>(world);
  double loss_sum = 0;
  double tokens = 0;
  for (int rank = 0; rank < world; ++rank) {
    SlotSums sums(false, StepSlots(false, each, rank, world));
    for (uint32_t m = 0; m < each; ++m) {
      const std::vector<double>& losses = batches[static_cast<size_t>(rank) * each + m];
      double sum = 0;
      for (const double loss : losses) {
        sum += loss;
      }
      sums.add(m, {sum, static_cast<double>(losses.size()), 0, 0, 0, 0});
    }
    loss_sum += sums.total()[0];
    tokens += sums.total()[1];
  }
  return loss_sum / tokens;
}

TEST(SlotSums, FieldBug_B027_LossIsTheMeanOverTokensNotOverMicroBatches) {
  EXPECT_EQ(reported({{4}, {1, 1, 2}}, 1), 2.0);
}

TEST(SlotSums, FieldBug_B028_TokensAreCountedOverRanksToo) {
  EXPECT_EQ(reported({{4}, {1, 1, 2}}, 2), 2.0);
  const std::vector<std::vector<double>> unequal{
      std::vector<double>(1, 16), std::vector<double>(3, 8), std::vector<double>(5, 4),
      std::vector<double>(7, 2)};
  EXPECT_EQ(reported(unequal, 2), (16 + 24 + 20 + 14) / 16.0);
  EXPECT_EQ(reported(unequal, 2), reported(unequal, 1));
}

TEST(SlotSums, FieldBug_B029_AccumulationDoesNotMultiplyTheLoss) {
  EXPECT_EQ(reported({{2, 2}, {2, 2}, {2, 2}, {2, 2}}, 1), 2.0);
}

TEST(SlotSums, FieldBug_B031_ARankWithIgnoredTargetsOnlyBringsNothing) {
  EXPECT_EQ(reported({{1, 3}, {}}, 2), 2.0);
}

TEST(SlotSums, OtherwiseThereIsOnePlace) {
  SlotSums sums(false, StepSlots(false, 2, 1, 2));
  sums.add(0, {1, 2, 3, 4, 5, 6});
  sums.add(1, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(sums.values().size(), SlotSums::kKinds);
  EXPECT_EQ(sums.total(), (SlotSums::Values{2, 4, 6, 8, 10, 12}));
}

}  // namespace
}  // namespace ciuic::core
