// SPDX-License-Identifier: MIT
#include "core/data/sample_order.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <ciuic/error.hpp>

namespace ciuic::core {
namespace {

std::vector<int64_t> epoch(const SampleOrder& order, int64_t rows, uint64_t number) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < rows; ++i) {
    out.push_back(order.row(number * static_cast<uint64_t>(rows) + static_cast<uint64_t>(i)));
  }
  return out;
}

bool is_permutation_of_rows(std::vector<int64_t> rows) {
  std::sort(rows.begin(), rows.end());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != static_cast<int64_t>(i)) {
      return false;
    }
  }
  return true;
}

TEST(SampleOrder, EveryRowOncePerEpoch) {
  for (int64_t rows : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 1000, 4097}) {
    for (uint64_t seed : {0u, 1u, 1234u}) {
      const SampleOrder order(rows, seed, true);
      for (uint64_t number : {0u, 1u, 1000u}) {
        EXPECT_TRUE(is_permutation_of_rows(epoch(order, rows, number)))
            << rows << " rows, seed " << seed;
      }
    }
  }
}

// pytorch/pytorch#31771: the same order in every epoch unless the user tells the sampler its
// number.
TEST(SampleOrder, B051_EpochsDifferAndASeedRepeats) {
  const SampleOrder order(64, 7, true);
  const std::set<std::vector<int64_t>> orders{epoch(order, 64, 0), epoch(order, 64, 1),
                                              epoch(order, 64, 2)};
  EXPECT_EQ(orders.size(), 3u);
  EXPECT_EQ(epoch(order, 64, 2), epoch(SampleOrder(64, 7, true), 64, 2));
  EXPECT_NE(epoch(order, 64, 0), epoch(SampleOrder(64, 8, true), 64, 0));
}

TEST(SampleOrder, SequentialIsTheIdentity) {
  const SampleOrder order(5, 7, false);
  std::vector<int64_t> identity(5);
  std::iota(identity.begin(), identity.end(), 0);
  EXPECT_EQ(epoch(order, 5, 0), identity);
  EXPECT_EQ(epoch(order, 5, 3), identity);
}

TEST(SampleOrder, CountsPastTheLargestEpoch) {
  const SampleOrder order(3, 7, true);
  const int64_t row = order.row(UINT64_MAX);
  EXPECT_TRUE(row >= 0 && row < 3);
  const SampleOrder large(INT64_MAX, 7, true);
  EXPECT_GE(large.row(12345), 0);
  EXPECT_THROW(SampleOrder(0, 7, true), Error);
}

// The same order for ever: a checkpoint resumed by a later version must not move. A change here
// breaks resume.
TEST(SampleOrder, IsPinned) {
  EXPECT_EQ(epoch(SampleOrder(10, 1234, true), 10, 0),
            (std::vector<int64_t>{8, 1, 9, 0, 4, 5, 2, 7, 6, 3}));
  EXPECT_EQ(epoch(SampleOrder(10, 1234, true), 10, 1),
            (std::vector<int64_t>{1, 5, 0, 4, 6, 7, 8, 2, 3, 9}));
}

// Pearson's chi-squared of where each row lands, over many seeds: 99 degrees of freedom a row, so a
// mean of 99 with a standard deviation of 14; the mean over 100 rows strays by 1.4.
TEST(SampleOrder, RowsLandEverywhereEquallyOften) {
  constexpr int64_t kRows = 100;
  constexpr int kSeeds = 10'000;
  std::vector<std::vector<int>> counts(kRows, std::vector<int>(kRows));
  for (int seed = 0; seed < kSeeds; ++seed) {
    const SampleOrder order(kRows, static_cast<uint64_t>(seed), true);
    for (int64_t i = 0; i < kRows; ++i) {
      ++counts[static_cast<size_t>(i)][static_cast<size_t>(order.row(static_cast<uint64_t>(i)))];
    }
  }
  constexpr double kExpected = static_cast<double>(kSeeds) / kRows;
  double mean = 0;
  for (const auto& row : counts) {
    double chi = 0;
    for (int count : row) {
      chi += (count - kExpected) * (count - kExpected) / kExpected;
    }
    EXPECT_LT(chi, 180);
    mean += chi / kRows;
  }
  EXPECT_NEAR(mean, 99, 8);
}

// All orders of a tiny epoch occur, about equally often: 4! = 24 orders, 23 degrees of freedom.
TEST(SampleOrder, EveryOrderOfFourOccurs) {
  std::vector<std::vector<int64_t>> seen;
  for (uint64_t seed = 0; seed < 12'000; ++seed) {
    seen.push_back(epoch(SampleOrder(4, seed, true), 4, 0));
  }
  std::sort(seen.begin(), seen.end());
  double chi = 0;
  int orders = 0;
  for (auto at = seen.begin(); at != seen.end(); ++orders) {
    const auto next = std::upper_bound(at, seen.end(), *at);
    chi += (next - at - 500.0) * (next - at - 500.0) / 500.0;
    at = next;
  }
  EXPECT_EQ(orders, 24);
  EXPECT_LT(chi, 60);
}

// Neighbours in the text must not stay neighbours in the order.
TEST(SampleOrder, NeighboursAreNotKeptTogether) {
  constexpr int64_t kRows = 10'000;
  const std::vector<int64_t> rows = epoch(SampleOrder(kRows, 3, true), kRows, 0);
  double distance = 0;
  int together = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    distance += static_cast<double>(std::abs(rows[i] - rows[i - 1]));
    together += std::abs(rows[i] - rows[i - 1]) == 1 ? 1 : 0;
  }
  EXPECT_NEAR(distance / kRows / kRows, 1.0 / 3, 0.02);
  EXPECT_LT(together, 12);  // about 2 by chance
}

}  // namespace
}  // namespace ciuic::core
