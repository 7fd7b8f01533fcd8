// SPDX-License-Identifier: MIT
//
// Kernels on every vector unit that this machine has, against plain loops: the same bits on all.
// (Whether a unit is there and compiled in is Highway's to say; the scalar one always is.)
#include <cmath>
#include <cstring>
#include <hwy/highway.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "optimizer/adamw_rule.h"
#include "optimizer/lion_rule.h"
#include "optimizer/narrow_numbers.h"
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

TEST(VectorTargets, WidenAllCodes) {
  std::vector<uint16_t> codes(1 << 16);
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<uint16_t>(i);
  }
  for_each_target([&](const std::string&) {
    for (const NumberFormat format : {NumberFormat::BF16, NumberFormat::F16}) {
      std::vector<float> out(codes.size());
      rules::widen(format, codes.data(), static_cast<int64_t>(codes.size()), out.data());
      for (size_t i = 0; i < codes.size(); ++i) {
        const double want = value_of(format, codes[i]);
        ASSERT_TRUE(std::isnan(want) ? std::isnan(out[i])
                                     : bits_of(out[i]) == bits_of(static_cast<float>(want)))
            << i;
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

TEST(VectorTargets, NarrowToNearestEven) {
  for (const NumberFormat format : {NumberFormat::BF16, NumberFormat::F16}) {
    const std::vector<float> in = hard_numbers(format);
    for_each_target([&](const std::string&) {
      std::vector<uint16_t> out(in.size());
      rules::narrow(format, in.data(), static_cast<int64_t>(in.size()), out.data());
      for (size_t i = 0; i < in.size(); ++i) {
        const uint16_t want =
            format == NumberFormat::BF16 ? float_to_bf16(in[i]) : float_to_f16(in[i]);
        const bool is_right =
            std::isnan(in[i]) ? std::isnan(value_of(format, out[i])) : out[i] == want;
        ASSERT_TRUE(is_right) << std::hex << bits_of(in[i]) << " gave " << out[i] << ", expected "
                              << want;
      }
    });
  }
}

TEST(VectorTargets, ChanceIsTheSameEverywhere) {
  std::vector<float> in = random_values(5003, 3);
  in[17] = INFINITY;
  in[18] = NAN;
  in[19] = -0.0F;
  const uint64_t first = (uint64_t{1} << 32) - 2500;  // the index' upper half changes within
  std::vector<uint16_t> reference;
  for_each_target([&](const std::string&) {
    std::vector<uint16_t> out(in.size());
    rules::narrow_by_chance(99, first, in.data(), 5003, out.data());
    if (reference.empty()) {
      reference = out;
    }
    EXPECT_EQ(out, reference);
    std::vector<uint16_t> pieces(in.size());
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 1}, {1, 2507}, {2507, 5003}}) {
      rules::narrow_by_chance(99, first + static_cast<uint64_t>(begin), in.data() + begin,
                              end - begin, pieces.data() + begin);
    }
    EXPECT_EQ(pieces, reference);
    EXPECT_EQ(out[17], 0x7F80);
    EXPECT_TRUE(std::isnan(bf16_to_float(out[18])));
    EXPECT_EQ(out[19], 0x8000);
  });
}

/// Neighbouring elements, updates and halves of the index roll independent dice: the counts of
/// pairs of outcomes stay within five deviations.
TEST(VectorTargets, ChancesAreIndependent) {
  constexpr int64_t kElements = 1 << 20;
  const std::vector<float> in(kElements, float_of(0x3F808000));  // half way between two codes
  const auto roll = [&](uint64_t update, uint64_t first) {
    std::vector<uint16_t> out(kElements);
    rules::narrow_by_chance(rules::hash_of({1, update, "w", 0}), first, in.data(), kElements,
                            out.data());
    return out;
  };
  const std::vector<uint16_t> a = roll(1, 0);
  const double deviation = std::sqrt(kElements / 4.0);
  const auto agreement = [&](const std::vector<uint16_t>& x, const std::vector<uint16_t>& y,
                             size_t shift) {
    int64_t equal = 0;
    for (size_t i = 0; i + shift < x.size(); ++i) {
      equal += x[i] == y[i + shift] ? 1 : 0;
    }
    return static_cast<double>(equal) - static_cast<double>(x.size() - shift) / 2;
  };
  for (const size_t shift : {1, 2, 3, 16, 64, 1024}) {
    EXPECT_LT(std::abs(agreement(a, a, shift)), 5 * deviation) << shift;
  }
  EXPECT_LT(std::abs(agreement(a, roll(2, 0), 0)), 5 * deviation);
  EXPECT_LT(std::abs(agreement(a, roll(1, uint64_t{1} << 32), 0)), 5 * deviation);
  EXPECT_LT(std::abs(agreement(a, roll(1, 1 << 20), 0)), 5 * deviation);
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
    return {0,
            static_cast<int64_t>(grad.size()),
            grad.data(),
            value.data(),
            {first.data(), second.data()}};
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
