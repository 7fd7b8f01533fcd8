// SPDX-License-Identifier: MIT
//
// Kernels on every vector unit that this machine has, against plain loops: the same bits on all.
// (Whether a unit is there and compiled in is Highway's to say; the scalar one always is.)
#include <algorithm>
#include <cmath>
#include <cstring>
#include <hwy/highway.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "optimizer/adamw_rule.h"
#include "optimizer/lion_rule.h"
#include "optimizer/rounding_key.h"
#include "optimizer/sgd_rule.h"
#include "rule_driver.h"

namespace ciuic::testing {
namespace {

namespace rules = plugins::optimizer;
using rules::NumberFormat;

/// Runs body(name) with each target in turn as the only one.
template <typename Body>
void for_each_target(Body body) {
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_FALSE(targets.empty());
  for (const int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    body(std::string(hwy::TargetName(target)));
  }
  hwy::SetSupportedTargetsForTest(0);
}

uint32_t bits_of(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
float float_of(uint32_t bits) {
  float x = 0;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

/// All codes, with the double that the format's definition gives.
double value_of(NumberFormat format, uint16_t code) {
  return format == NumberFormat::BF16 ? bf16_to_float(code) : f16_to_float(code);
}

template <typename T>
rules::Column column_of(std::vector<T>& values, NumberFormat format) {
  return {reinterpret_cast<char*>(values.data()), format};
}

rules::Block block_of(std::vector<float>& master) {
  rules::Block block{};
  block.count = static_cast<int64_t>(master.size());
  block.master = column_of(master, NumberFormat::F32);
  return block;
}

/// value = grad, by SGD with lr -1 from 0.
TEST(VectorTargets, GradientsOfAllCodes) {
  std::vector<uint16_t> codes(1 << 16);
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<uint16_t>(i);
  }
  rules::SgdScalars s{};
  s.grad_scale = s.step = 1;
  for_each_target([&](const std::string&) {
    for (const NumberFormat format : {NumberFormat::BF16, NumberFormat::F16}) {
      std::vector<float> value(codes.size());
      rules::Block block = block_of(value);
      block.grad = column_of(codes, format);
      sgd_update(s, block);
      for (size_t i = 0; i < codes.size(); ++i) {
        const double want = value_of(format, codes[i]);
        ASSERT_TRUE(std::isnan(want) ? std::isnan(value[i]) : value[i] == want) << i;
      }
    }
  });
}

/// Every code, its ties to both sides and their neighbours, and arbitrary bits.
std::vector<float> hard_numbers(NumberFormat format) {
  std::vector<float> out;
  for (uint32_t code = 0; code < 0x7FFF; ++code) {
    const double a = value_of(format, static_cast<uint16_t>(code));
    const double b = value_of(format, static_cast<uint16_t>(code + 1));
    if (!std::isfinite(a)) {
      continue;
    }
    const auto tie = static_cast<float>(std::isfinite(b) ? (a + b) / 2 : a * (1 + 1.0 / 4096));
    for (const float x :
         {static_cast<float>(a), tie, std::nextafterf(tie, 0), std::nextafterf(tie, INFINITY)}) {
      out.push_back(x);
      out.push_back(-x);
    }
  }
  std::mt19937 engine(7);
  for (int i = 0; i < 100'000; ++i) {
    out.push_back(float_of(static_cast<uint32_t>(engine())));
  }
  for (const float x : {INFINITY, -INFINITY, NAN, 65504.0F, 65519.996F, 65520.0F, 3e38F}) {
    out.push_back(x);
  }
  return out;
}

/// The copy of masters that AdamW with lr 0 leaves as they are.
TEST(VectorTargets, CopiesAreRoundedToNearestEven) {
  rules::AdamWScalars s{};
  s.decay = s.epsilon = s.correction2 = 1;
  s.step_size = -0.0F;
  for (const NumberFormat format : {NumberFormat::BF16, NumberFormat::F16}) {
    const std::vector<float> in = hard_numbers(format);
    for_each_target([&](const std::string&) {
      std::vector<float> master = in;
      std::vector<float> zeros(in.size());
      std::vector<float> first = zeros;
      std::vector<float> second = zeros;
      std::vector<uint16_t> copy(in.size());
      rules::Block block = block_of(master);
      block.grad = column_of(zeros, NumberFormat::F32);
      block.state = {column_of(first, NumberFormat::F32), column_of(second, NumberFormat::F32)};
      block.copy = column_of(copy, format);
      adamw_update(s, block);
      for (size_t i = 0; i < in.size(); ++i) {
        const uint16_t want =
            format == NumberFormat::BF16 ? float_to_bf16(in[i]) : float_to_f16(in[i]);
        const bool is_right =
            std::isnan(in[i]) ? std::isnan(value_of(format, copy[i])) : copy[i] == want;
        ASSERT_TRUE(is_right) << std::hex << bits_of(in[i]) << " gave " << copy[i] << ", expected "
                              << want;
      }
    });
  }
}

/// AdamW's moments by chance, after an update from 0 with beta1 = 0 and lr 0: m = g, v = g g / 2.
struct Chances {
  std::vector<uint16_t> mean, square;
};
Chances roll(std::vector<float> grad, uint64_t key, uint32_t first, int64_t begin = 0,
             int64_t end = -1) {
  Chances out{std::vector<uint16_t>(grad.size()), std::vector<uint16_t>(grad.size())};
  std::vector<float> value(grad.size());
  rules::AdamWScalars s{};
  s.grad_scale = s.decay = s.epsilon = s.correction2 = 1;
  s.one_minus_beta2 = 0.5F;
  rules::Block block = block_of(value);
  block.count = (end < 0 ? block.count : end) - begin;
  block.master = block.master.from(begin);
  block.grad = column_of(grad, NumberFormat::F32).from(begin);
  block.state = {column_of(out.mean, NumberFormat::BF16).from(begin),
                 column_of(out.square, NumberFormat::BF16).from(begin)};
  block.by_chance = true;
  block.key = key;
  block.first = first + static_cast<uint32_t>(begin);
  adamw_update(s, block);
  return out;
}

TEST(VectorTargets, ChanceIsTheSameEverywhere) {
  const std::vector<float> grad = random_values(5003, 3);
  Chances reference;
  for_each_target([&](const std::string&) {
    const Chances whole = roll(grad, 99, 1234);
    if (reference.mean.empty()) {
      reference = whole;
    }
    EXPECT_EQ(whole.mean, reference.mean);
    EXPECT_EQ(whole.square, reference.square);
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 1}, {1, 2507}, {2507, 5003}}) {
      const Chances part = roll(grad, 99, 1234, begin, end);
      EXPECT_TRUE(std::equal(part.mean.begin() + begin, part.mean.begin() + end,
                             reference.mean.begin() + begin));
      EXPECT_TRUE(std::equal(part.square.begin() + begin, part.square.begin() + end,
                             reference.square.begin() + begin));
    }
  });
}

TEST(VectorTargets, ChanceKeepsNanAndInfinity) {
  for_each_target([&](const std::string&) {
    const Chances c = roll({float_of(0x7FFFFFFF), float_of(0xFF800001), 1e30F}, 99, 0);
    EXPECT_TRUE(std::isnan(bf16_to_float(c.mean[0])));
    EXPECT_TRUE(std::isnan(bf16_to_float(c.mean[1])));
    EXPECT_EQ(c.square[2], 0x7F80);
  });
}

/// Neighbouring elements, updates, stretches and the two moments roll independent dice: the counts
/// of equal outcomes stay within five deviations of a half.
TEST(VectorTargets, ChancesAreIndependent) {
  constexpr size_t kElements = 1 << 20;
  const std::vector<float> half_way(kElements, float_of(0x3F808000));  // between two codes
  const auto key = [](uint64_t update) { return rules::rounding_key(1, update, "w"); };
  const Chances a = roll(half_way, key(1), 0);
  const auto is_up = [](const std::vector<uint16_t>& x, size_t i) { return x[i] == 0x3F81; };
  const auto excess = [&](const std::vector<uint16_t>& x, const std::vector<uint16_t>& y,
                          size_t shift) {
    int64_t equal = 0;
    for (size_t i = 0; i + shift < kElements; ++i) {
      equal += is_up(x, i) == is_up(y, i + shift) ? 1 : 0;
    }
    return std::abs(static_cast<double>(equal) - static_cast<double>(kElements - shift) / 2);
  };
  const double allowed = 5 * std::sqrt(kElements / 4.0);
  for (const size_t shift : {1, 2, 3, 16, 64, 1024}) {
    EXPECT_LT(excess(a.mean, a.mean, shift), allowed) << shift;
  }
  EXPECT_LT(excess(a.mean, roll(half_way, key(2), 0).mean, 0), allowed);
  EXPECT_LT(excess(a.mean, roll(half_way, rules::key_of_stretch(key(1), 1), 0).mean, 0), allowed);
  EXPECT_LT(excess(a.mean, roll(half_way, key(1), kElements).mean, 0), allowed);
  // The square of a root of 2 that is half way: v = g g / 2 has its own dice.
  std::vector<float> root(kElements, std::sqrt(2 * float_of(0x3F808000)));
  const Chances v = roll(root, key(1), 0);
  const auto ups =
      std::count_if(v.square.begin(), v.square.end(), [](uint16_t code) { return code == 0x3F81; });
  EXPECT_NEAR(static_cast<double>(ups), kElements / 2.0, allowed + kElements * 1e-3);
  EXPECT_LT(excess(a.mean, v.square, 0), allowed + kElements * 1e-3);
}

struct Arrays {
  explicit Arrays(size_t n)
      : grad(random_values(n, 1)),
        value(random_values(n, 2)),
        first(random_values(n, 3)),
        second(random_values(n, 4)) {
    for (float& x : second) {
      x *= x;
    }
  }
  rules::Block block() {
    rules::Block block = block_of(value);
    block.grad = column_of(grad, NumberFormat::F32);
    block.state = {column_of(first, NumberFormat::F32), column_of(second, NumberFormat::F32)};
    return block;
  }
  std::vector<float> grad, value, first, second;
};

ciuic_update update_of(uint64_t number) {
  ciuic_update u{};
  u.update = number;
  u.lr = 1e-2;
  u.grad_scale = 0.3;
  return u;
}

/// One update of 1003 elements on each target: bit-equal, and within `ulps` of the fp64 rule.
template <typename Update, typename Element>
void compare(Update update, Element element, double ulps) {
  std::vector<float> reference;
  for_each_target([&](const std::string&) {
    Arrays arrays(1003);
    const Arrays before = arrays;
    update(arrays.block());
    for (size_t i = 0; i < arrays.value.size(); ++i) {
      const double want = element(before, i);
      ASSERT_NEAR(arrays.value[i], want, ulps / (1 << 24) * std::max(1.0, std::abs(want))) << i;
    }
    if (reference.empty()) {
      reference = arrays.value;
    }
    EXPECT_EQ(arrays.value, reference);
  });
}

// Roundings: of the value and its decay, half a unit each; of the step, at most lr times a few.
constexpr double kUlps = 3;

TEST(VectorTargets, AdamW) {
  const ciuic_update u = update_of(3);
  const rules::AdamWScalars s = rules::adamw_scalars({0.9, 0.95, 1e-8}, u, 0.1);
  compare([&](const rules::Block& b) { rules::adamw_update(s, b); },
          [&](const Arrays& a, size_t i) {
            const double g = a.grad[i] * u.grad_scale;
            const double m = 0.9 * a.first[i] + 0.1 * g;
            const double v = 0.95 * a.second[i] + 0.05 * g * g;
            const double root = std::sqrt(v / (1 - std::pow(0.95, 3))) + 1e-8;
            return a.value[i] * (1 - u.lr * 0.1) - u.lr * m / (1 - std::pow(0.9, 3)) / root;
          },
          kUlps);
}

TEST(VectorTargets, Sgd) {
  const ciuic_update u = update_of(3);
  const rules::SgdScalars s = rules::sgd_scalars({0.9, 0, true}, u, 0.1);
  compare([&](const rules::Block& b) { rules::sgd_update(s, b); },
          [&](const Arrays& a, size_t i) {
            const double g = a.grad[i] * u.grad_scale + 0.1 * a.value[i];
            return a.value[i] - u.lr * (g + 0.9 * (0.9 * a.first[i] + g));
          },
          kUlps);
}

TEST(VectorTargets, Lion) {
  const ciuic_update u = update_of(3);
  const rules::LionScalars s = rules::lion_scalars({0.9, 0.99}, u, 0.1);
  compare([&](const rules::Block& b) { rules::lion_update(s, b); },
          [&](const Arrays& a, size_t i) {
            const double c = 0.9 * a.first[i] + 0.1 * a.grad[i] * u.grad_scale;
            return a.value[i] * (1 - u.lr * 0.1) - u.lr * (c > 0 ? 1 : -1);
          },
          kUlps);
}

}  // namespace
}  // namespace ciuic::testing
