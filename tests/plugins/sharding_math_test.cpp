// SPDX-License-Identifier: MIT
//
// The mathematics that strategies share: cuts of flat memory, bucket plans, slot trees, exact sums.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/sharding/bucket_plan.hpp>
#include <ciuic/sharding/exact_sum.hpp>
#include <ciuic/sharding/partition.hpp>
#include <ciuic/sharding/slot_tree.hpp>

namespace ciuic::sharding {
namespace {

using ::testing::ElementsAre;

// ---- partition ----

TEST(Partition, EvenPartsDifferByOneElement) {
  EXPECT_THAT(cut({{0, 11, 1}}, {0, 16}, 4), ElementsAre(0, 3, 6, 9, 16));
  EXPECT_THAT(cut({{0, 1, 1}}, {0, 16}, 3), ElementsAre(0, 16, 16, 16))
      << "more parts than elements";
  EXPECT_THAT(cut({}, {0, 0}, 3), ElementsAre(0, 0, 0, 0));
}

TEST(Partition, PaddingBelongsToNoCount) {
  // 4 + 4 elements with 12 of padding after each: the middle is the border of the pieces.
  EXPECT_THAT(cut({{0, 4, 1}, {16, 4, 1}}, {0, 32}, 2), ElementsAre(0, 16, 32));
  EXPECT_THAT(cut({{0, 4, 1}, {16, 4, 1}}, {0, 32}, 4), ElementsAre(0, 2, 16, 18, 32));
}

TEST(Partition, GranulesStayWhole) {
  EXPECT_THAT(cut({{0, 10, 4}}, {0, 16}, 2), ElementsAre(0, 4, 16)) << "5 is nearer to 4 than to 8";
  EXPECT_THAT(cut({{0, 10, 4}}, {0, 16}, 3), ElementsAre(0, 4, 8, 16));
  EXPECT_THAT(cut({{0, 9, 9}, {16, 9, 9}}, {0, 32}, 3), ElementsAre(0, 16, 16, 32))
      << "two matrices on three ranks";
}

TEST(Partition, AnyCutCoversAllAndKeepsGranules) {
  std::mt19937 random(1);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<FlatPiece> pieces;
    int64_t at = 0;
    for (int64_t i = below(6); i >= 0; --i) {
      const int64_t count = below(50);
      pieces.push_back({at, count, 1 + below(9)});
      at += (count + 15) / 16 * 16;
    }
    const int64_t parts = 1 + below(7);
    const std::vector<int64_t> edges = cut(pieces, {0, at}, parts);
    ASSERT_EQ(edges.size(), static_cast<size_t>(parts) + 1);
    EXPECT_EQ(edges.front(), 0);
    EXPECT_EQ(edges.back(), at);
    EXPECT_TRUE(std::is_sorted(edges.begin(), edges.end()));
    for (const int64_t edge : edges) {
      for (const FlatPiece& p : pieces) {
        if (edge > p.offset && edge < p.offset + p.count) {
          EXPECT_EQ((edge - p.offset) % p.granule, 0) << "inside a granule";
        }
      }
    }
  }
}

// ---- bucket plans ----

ciuic_param param(uint64_t id, uint32_t unit, int64_t elements) {
  ciuic_param p{};
  p.struct_size = sizeof(p);
  p.id = id;
  p.name = to_str("p");
  p.unit = unit;
  p.group = 1;
  p.tied_to = -1;
  p.value = p.grad = p.reduce = p.master = kF32;
  p.num_elements = elements;
  p.granule = 1;
  return p;
}

TEST(BucketPlan, LastUnitFirstAndSized) {
  const std::vector<ciuic_param> params{param(0, 0, 16), param(1, 1, 16), param(2, 2, 16)};
  const auto all = plan_buckets(to_array(params), 1 << 20, BucketSpan::kUnits);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_THAT(all[0].params, ElementsAre(2, 1, 0));
  EXPECT_THAT(all[0].offsets, ElementsAre(0, 16, 32));
  const auto two = plan_buckets(to_array(params), 128, BucketSpan::kUnits);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_THAT(two[0].units, ElementsAre(1, 2));
  EXPECT_EQ(plan_buckets(to_array(params), 1 << 20, BucketSpan::kOneUnit).size(), 3U);
}

TEST(BucketPlan, EveryTypeOfAParameterIsAligned) {
  std::vector<ciuic_param> params{param(0, 0, 3), param(1, 0, 3)};
  for (ciuic_param& p : params) {
    p.value = kBF16;
  }
  const auto buckets = plan_buckets(to_array(params), 1 << 20, BucketSpan::kUnits);
  EXPECT_THAT(buckets[0].offsets, ElementsAre(0, 32)) << "64 bytes of bf16";
}

TEST(BucketPlan, ATiedParameterWaitsForItsFirstUnit) {
  std::vector<ciuic_param> params{param(0, 0, 3), param(1, 1, 3), param(2, 1, 3), param(3, 2, 3)};
  params[3].tied_to = 0;
  const auto buckets = plan_buckets(to_array(params), 1 << 20, BucketSpan::kOneUnit);
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_THAT(buckets[0].params, ElementsAre(2, 1));
  EXPECT_THAT(buckets[1].units, ElementsAre(0, 2));
}

TEST(BucketPlan, KindsDoNotMix) {
  std::vector<ciuic_param> params{param(0, 0, 3), param(1, 0, 3), param(2, 0, 3), param(3, 0, 3),
                                  param(4, 0, 3)};
  params[1].value = kBF16;
  params[2].group = 2;
  params[3].flags = CIUIC_PARAM_FROZEN;
  params[4].sum_group = 1;
  EXPECT_EQ(plan_buckets(to_array(params), 1 << 20, BucketSpan::kUnits).size(), 5U);
}

// ---- slot trees ----

TEST(SlotTree, OneTreeHoweverItIsWalked) {
  for (uint32_t slots = 1; slots <= 33; ++slots) {
    std::vector<std::string> in_place(slots);
    for (uint32_t i = 0; i < slots; ++i) {
      in_place[i] = std::to_string(i);
    }
    for (const auto& [into, from] : tree_additions(slots)) {
      in_place[into] = "(" + in_place[into] + "+" + in_place[from] + ")";
    }
    std::vector<std::string> stack;
    size_t highest = 0;
    for (uint32_t i = 0; i < slots; ++i) {
      stack.push_back(std::to_string(i));
      highest = std::max(highest, stack.size());
      for (uint32_t m = 0; m < merges_after(slots)[i]; ++m) {
        const std::string top = stack.back();
        stack.pop_back();
        stack.back() = "(" + stack.back() + "+" + top + ")";
      }
    }
    ASSERT_EQ(stack.size(), 1U);
    EXPECT_EQ(stack[0], in_place[0]);
    EXPECT_LE(highest, stack_height(slots));
    EXPECT_EQ(stack_height(slots), 1 + static_cast<uint32_t>(std::ceil(std::log2(slots))));
  }
  std::vector<std::pair<uint32_t, uint32_t>> five{{0, 1}, {0, 2}, {3, 4}, {0, 3}};
  EXPECT_EQ(tree_additions(5), five) << "((0+1)+2)+(3+4)";
}

// ---- exact sums ----

TEST(ExactSum, SmallSumsAreThoseOfDouble) {
  ExactSum sum;
  EXPECT_EQ(sum.value(), 0);
  for (const double x : {1.0, 2.5, 0.125, 1e6}) {
    sum.add(x);
  }
  EXPECT_EQ(sum.value(), 1000003.625);
}

TEST(ExactSum, KeepsWhatDoubleLoses) {
  ExactSum sum;
  sum.add(1e300);
  for (int i = 0; i < 1000; ++i) {
    sum.add(1e-300);
  }
  EXPECT_EQ(sum.value(), 1e300);
  ExactSum ties;  // 2^53 + 1 is a tie between two doubles; one bit more decides
  ties.add(0x1p53);
  ties.add(1);
  EXPECT_EQ(ties.value(), 0x1p53);
  ties.add(0x1p-1074);
  EXPECT_EQ(ties.value(), 0x1p53 + 2);
}

TEST(ExactSum, OddTiesRoundToEven) {
  ExactSum sum;
  sum.add(0x1p53 + 2);
  sum.add(1);
  EXPECT_EQ(sum.value(), 0x1p53 + 4);
}

TEST(ExactSum, EndsOfTheRange) {
  ExactSum small;
  for (int i = 0; i < 3; ++i) {
    small.add(0x1p-1074);
  }
  EXPECT_EQ(small.value(), 3 * 0x1p-1074) << "subnormal";
  ExactSum large;
  large.add(std::numeric_limits<double>::max());
  EXPECT_EQ(large.value(), std::numeric_limits<double>::max());
  large.add(std::numeric_limits<double>::max());
  EXPECT_EQ(large.value(), std::numeric_limits<double>::infinity());
}

/// Squares of floats over the whole range, against long double where that is exact enough to say.
TEST(ExactSum, NeitherOrderNorRanksChangeABit) {
  std::mt19937_64 random(7);
  std::vector<double> squares;
  for (int i = 0; i < 20000; ++i) {
    const int exponent = static_cast<int>(random() % 60) - 30;
    const auto x =
        static_cast<float>(std::ldexp(static_cast<double>(random() % 1000003) + 1, exponent));
    squares.push_back(static_cast<double>(x) * x);
  }
  ExactSum forward;
  for (const double x : squares) {
    forward.add(x);
  }
  long double wide = 0;
  std::vector<double> sorted = squares;
  std::sort(sorted.begin(), sorted.end());
  for (const double x : sorted) {
    wide += x;
  }
  // 20000 additions of 64 bits: the reference itself is off by up to 20000 x 2^-64.
  EXPECT_NEAR(static_cast<double>(forward.value() / wide), 1, 2e-15);
  for (const size_t ranks : {2U, 3U, 4U}) {
    std::shuffle(squares.begin(), squares.end(), random);
    std::vector<ExactSum> parts(ranks);
    for (size_t i = 0; i < squares.size(); ++i) {
      parts[i % ranks].add(squares[i]);
    }
    ExactSum::Limbs total{};
    for (const ExactSum& part : parts) {
      const ExactSum::Limbs limbs = part.limbs();
      for (size_t k = 0; k < total.size(); ++k) {
        total[k] += limbs[k];
      }
    }
    ExactSum all;
    all.add(total);
    EXPECT_EQ(all.value(), forward.value());
  }
}

}  // namespace
}  // namespace ciuic::sharding
