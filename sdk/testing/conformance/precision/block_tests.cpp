// SPDX-License-Identifier: MIT
//
// Formats with a scale a block (FP8 as in DeepSeek-V3, arXiv:2412.19437, sec. 3.3: 1 x 128 for
// activations, 128 x 128 for weights; or one scale a tensor): the scale fits its block, numbers are
// rounded to nearest even beneath it, ragged, zero and bad blocks do no harm to others.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cast_bench.hpp"
#include "policy_tests.hpp"

namespace ciuic::testing {
namespace {

constexpr double kTinyBlock = 1e-10;  // below, a scale may be held up by a floor

/// Runs `check(offer, policy)` over the readable formats with scales.
template <typename Check>
void for_block_formats(const TestContext& context, Check&& check) {
  const PolicyBench policy(context);
  for (const Offer& offer : readable_offers(context, policy, true)) {
    check(policy, offer);
  }
}

void need_fitting_scales(const TestContext& context) {
  if (has_feature(context.plugin.descriptor(), "scale:delayed")) {
    throw NotOffered("the feature \"scale:delayed\" says that scales need not fit");
  }
}

std::string where(const Offer& offer, const CastInput& in, int64_t r, int64_t c) {
  return to_text(offer.kind) + ", " + std::to_string(in.rows()) + " x " +
         std::to_string(in.columns()) + ", element [" + std::to_string(r) + ", " +
         std::to_string(c) + "] = " + exact_text(in.at(r, c));
}

double largest_of_block(const CastInput& in, const CastResult& result, int64_t r, int64_t c) {
  const int64_t r0 = r / result.block_rows() * result.block_rows();
  const int64_t c0 = c / result.block_columns() * result.block_columns();
  double out = 0;
  for (int64_t i = r0; i < std::min(r0 + result.block_rows(), in.rows()); ++i) {
    for (int64_t j = c0; j < std::min(c0 + result.block_columns(), in.columns()); ++j) {
      out = std::max(out, std::fabs(in.at(i, j)));
    }
  }
  return out;
}

/// A block's scale lets its largest number in and wastes less than two bits.
void check_scale(const TestContext& context, const Offer& offer, const CastInput& in,
                 const CastResult& result, int64_t r, int64_t c) {
  const double scale = result.scale_of(r, c);
  const double largest = largest_of_block(in, result, r, c);
  const double top = FloatFormat::of(offer.format.dtype).largest();
  require(std::isfinite(scale) && scale > 0, [&] {
    return where(offer, in, r, c) + ": the scale of its block is " + exact_text(scale);
  });
  require(largest < kTinyBlock || scale <= 4 * largest / top, [&] {
    return where(offer, in, r, c) + ": the largest of its block is " + exact_text(largest) +
           ", the scale " + exact_text(scale) + "; expected about largest / " + exact_text(top) +
           ": the format's upper two bits of range are unused";
  });
  int exponent = 0;
  require(!has_feature(context.plugin.descriptor(), "scale:power_of_two") ||
              std::frexp(scale, &exponent) == 0.5,
          [&] {
            return where(offer, in, r, c) + ": scale " + exact_text(scale) +
                   " is no power of two, which the feature \"scale:power_of_two\" says";
          });
}

/// Half a step of the format at this number, under this scale; scaling may cost a bit of f32.
void check_error(const Offer& offer, const CastInput& in, const CastResult& result, int64_t r,
                 int64_t c) {
  const FloatFormat& format = FloatFormat::of(offer.format.dtype);
  const double x = in.at(r, c);
  const double got = result.value(r, c);
  const double half_step =
      std::max(std::fabs(x) * format.epsilon(), result.scale_of(r, c) * format.smallest() / 2);
  require(std::fabs(got - x) <= half_step * (1 + 0x1p-18), [&] {
    return where(offer, in, r, c) + " is cast to " + exact_text(got) + " (scale " +
           exact_text(result.scale_of(r, c)) + "); expected within " + exact_text(half_step);
  });
}

void check_all(const TestContext& context, const PolicyBench& policy, const Offer& offer,
               const CastInput& in) {
  const CastResult result(policy, offer.kind, in);
  for (int64_t r = 0; r < in.rows(); ++r) {
    for (int64_t c = 0; c < in.columns(); ++c) {
      if (r % result.block_rows() == 0 && c % result.block_columns() == 0) {
        check_scale(context, offer, in, result, r, c);
      }
      check_error(offer, in, result, r, c);
    }
  }
}

}  // namespace

void block_scales_cover_their_blocks(const TestContext& context) {
  need_fitting_scales(context);
  for_block_formats(context, [&](const PolicyBench& policy, const Offer& offer) {
    constexpr int64_t kRows = 260;
    constexpr int64_t kColumns = 400;
    for (const int exponent : {-30, 0, 30}) {
      if (same(offer.kind.in, kF16) && exponent != 0) {
        continue;
      }
      std::vector<double> values =
          varied_values(context.seed, kRows * kColumns, exponent - 8, exponent);
      for (int64_t i = 0; i < kRows * kColumns; ++i) {  // each block has a size of its own
        const int64_t block = i / kColumns / 128 * 4 + i % kColumns / 128;
        values[static_cast<size_t>(i)] =
            std::ldexp(values[static_cast<size_t>(i)], static_cast<int>(block % 5) * 3 - 6);
      }
      check_all(context, policy, offer, CastInput(offer.kind.in, kRows, kColumns, values));
    }
  });
}

/// Blocks whose largest number is the format's own times a power of two: the scale is that power,
/// so codes are known exactly, ties included.
void blocks_round_to_even(const TestContext& context) {
  need_fitting_scales(context);
  for_block_formats(context, [&](const PolicyBench& policy, const Offer& offer) {
    if (!same(offer.kind.in, kF32)) {
      return;
    }
    const FloatFormat& format = FloatFormat::of(offer.format.dtype);
    std::vector<double> values;
    for (size_t i = 0; i + 1 < format.values().size(); ++i) {
      const double tie = (format.values()[i] + format.values()[i + 1]) / 2;
      for (const double x : {format.values()[i], tie, tie * (1 + 0x1p-20), tie * (1 - 0x1p-20)}) {
        if (values.size() % 64 == 0) {  // in every block, whatever its width
          values.push_back(format.largest());
        }
        values.push_back(values.size() % 2 == 0 ? x : -x);
      }
    }
    constexpr int64_t kColumns = 128;
    values.resize((values.size() + kColumns - 1) / kColumns * kColumns, format.largest());
    const CastInput in(kF32, static_cast<int64_t>(values.size()) / kColumns, kColumns, values);
    const CastResult result(policy, offer.kind, in);
    for (int64_t r = 0; r < in.rows(); ++r) {
      for (int64_t c = 0; c < in.columns(); ++c) {
        int exponent = 0;
        const double scale = result.scale_of(r, c);
        if (std::frexp(scale, &exponent) != 0.5) {
          continue;  // a margin of the policy's own: the error bound has to do
        }
        const double expected = format.decode(format.encode(in.at(r, c) / scale, true)) * scale;
        require(result.value(r, c) == expected, [&] {
          return where(offer, in, r, c) + " under the scale " + exact_text(scale) + " is cast to " +
                 exact_text(result.value(r, c)) + ", expected " + exact_text(expected) +
                 " (nearest, ties to even)";
        });
      }
    }
  });
}

void ragged_blocks_are_whole(const TestContext& context) {
  need_fitting_scales(context);
  for_block_formats(context, [&](const PolicyBench& policy, const Offer& offer) {
    constexpr int64_t kShapes[][2] = {{1, 1},     {1, 127},   {1, 129}, {127, 129}, {128, 128},
                                      {129, 128}, {131, 260}, {3, 300}, {300, 3}};
    for (const auto& shape : kShapes) {
      check_all(context, policy, offer,
                CastInput(offer.kind.in, shape[0], shape[1],
                          varied_values(context.seed, shape[0] * shape[1])));
    }
  });
}

void zero_blocks_stay_zero(const TestContext& context) {
  for_block_formats(context, [&](const PolicyBench& policy, const Offer& offer) {
    constexpr int64_t kRows = 256;
    constexpr int64_t kColumns = 384;
    std::vector<double> values = varied_values(context.seed, kRows * kColumns);
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      const bool is_zero = i / kColumns < 128 || i % kColumns >= 256;
      values[static_cast<size_t>(i)] *= is_zero ? 0 : 1;
    }
    for (const bool all : {false, true}) {
      const CastInput in(offer.kind.in, kRows, kColumns,
                         all ? std::vector<double>(values.size()) : values);
      const CastResult result(policy, offer.kind, in);
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t c = 0; c < kColumns; ++c) {
          require(in.at(r, c) != 0 || result.value(r, c) == 0, [&] {
            return where(offer, in, r, c) + " is cast to " + exact_text(result.value(r, c)) +
                   ", scale " + exact_text(result.scale_of(r, c)) + "; expected 0";
          });
        }
      }
    }
  });
}

void bad_blocks_stay_bad(const TestContext& context) {
  for_block_formats(context, [&](const PolicyBench& policy, const Offer& offer) {
    constexpr int64_t kRows = 256;
    constexpr int64_t kColumns = 384;
    const bool saturates = has_feature(context.plugin.descriptor(), "cast:saturates");
    const std::vector<double> values = varied_values(context.seed, kRows * kColumns);
    const CastInput clean(offer.kind.in, kRows, kColumns, values);
    const CastResult before(policy, offer.kind, clean);
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      std::vector<double> spoilt = values;
      spoilt[10 * kColumns + 150] = bad;
      const CastInput in(offer.kind.in, kRows, kColumns, spoilt);
      const CastResult result(policy, offer.kind, in);
      const double got = result.value(10, 150);
      require(!std::isfinite(got) || (saturates && std::isinf(bad)), [&] {
        return where(offer, in, 10, 150) + " is cast to " + exact_text(got) +
               ": a number that went bad must stay visible";
      });
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t c = 0; c < kColumns; ++c) {
          const bool same_block = r / result.block_rows() == 10 / result.block_rows() &&
                                  c / result.block_columns() == 150 / result.block_columns();
          require(same_block || result.value(r, c) == before.value(r, c), [&] {
            return where(offer, in, r, c) + " is cast to " + exact_text(result.value(r, c)) +
                   " when another block holds " + exact_text(bad) + ", and to " +
                   exact_text(before.value(r, c)) + " when it does not";
          });
        }
      }
    }
  });
}

}  // namespace ciuic::testing
