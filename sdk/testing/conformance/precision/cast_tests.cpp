// SPDX-License-Identifier: MIT
//
// Casts to a format without scales, over every bf16 and f16 number and, from f32, over every tie of
// the target with its two neighbours: rounded to nearest, ties to even, subnormals and signed zeros
// kept.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cast_bench.hpp"
#include "policy_tests.hpp"

namespace ciuic::testing {
namespace {

constexpr int64_t kColumns = 256;

bool saturates(const TestContext& context) {
  return has_feature(context.plugin.descriptor(), "cast:saturates");
}

void add_both_signs(std::vector<double>& out, double value) {
  out.push_back(value);
  out.push_back(-value);
}

/// Every finite number of a format that `in` can hold.
void add_all_of(std::vector<double>& out, ciuic_dtype of, ciuic_dtype in) {
  for (const double value : FloatFormat::of(of).values()) {
    if (same(in, kF32) || same(in, of)) {
      add_both_signs(out, value);
    }
  }
}

/// Half way between neighbours of the target, and the f32 numbers beside it.
void add_ties(std::vector<double>& out, const FloatFormat& target) {
  const std::vector<double>& values = target.values();
  for (size_t i = 0; i < values.size(); ++i) {
    const double step =
        i + 1 < values.size() ? values[i + 1] - values[i] : values[i] - values[i - 1];
    const auto tie = static_cast<float>(values[i] + step / 2);
    add_both_signs(out, tie);
    add_both_signs(out, std::nextafterf(tie, 0.0F));
    add_both_signs(out, std::nextafterf(tie, std::numeric_limits<float>::infinity()));
  }
}

std::vector<double> inputs(ciuic_dtype in, const FloatFormat& target) {
  std::vector<double> out;
  add_all_of(out, kBF16, in);
  add_all_of(out, kF16, in);
  if (same(in, kF32)) {
    add_ties(out, target);
    add_both_signs(out, std::numeric_limits<float>::max());
    add_both_signs(out, std::numeric_limits<float>::denorm_min());
  }
  return out;
}

/// Casts `values` and hands each number as stored, its code, and the format to `check`.
template <typename Check>
void cast_all(const PolicyBench& policy, const CastKind& kind, std::vector<double> values,
              Check&& check) {
  values.resize((values.size() + kColumns - 1) / kColumns * kColumns);
  const auto rows = static_cast<int64_t>(values.size()) / kColumns;
  const CastInput in(kind.in, rows, kColumns, values);
  const CastResult result(policy, kind, in);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) {
      check(in.at(r, c), result.code(r, c));
    }
  }
}

std::string hex(uint32_t code) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%x", code);
  return text;
}

/// The codes of all numbers for which `wanted` holds are those of round to nearest even.
template <typename Wanted>
void compare_codes(const TestContext& context, Wanted&& wanted) {
  const PolicyBench policy(context);
  for (const Offer& offer : readable_offers(context, policy, false)) {
    const FloatFormat& format = FloatFormat::of(offer.format.dtype);
    cast_all(policy, offer.kind, inputs(offer.kind.in, format), [&](double x, uint32_t code) {
      const uint32_t expected = format.encode(x, saturates(context));
      require(!wanted(x, format) || code == expected, [&] {
        return to_text(offer.kind) + " to " + dtype_name(offer.format.dtype) + ": " +
               exact_text(x) + " gives " + exact_text(format.decode(code)) + " (code " + hex(code) +
               "), expected " + exact_text(format.decode(expected)) + " (" + hex(expected) + ")";
      });
    });
  }
}

bool overflows(double x, const FloatFormat& format) {
  return !std::isfinite(format.decode(format.encode(x, false)));
}

}  // namespace

void cast_rounds_to_even(const TestContext& context) {
  compare_codes(context, [](double x, const FloatFormat& f) { return !overflows(x, f); });
}

void cast_saturates_as_declared(const TestContext& context) {
  compare_codes(context, [](double x, const FloatFormat& f) {
    return overflows(x, f);  // infinity or NaN; with "cast:saturates" the largest number
  });
}

void cast_keeps_nan(const TestContext& context) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const PolicyBench policy(context);
  for (const Offer& offer : readable_offers(context, policy, false)) {
    const FloatFormat& format = FloatFormat::of(offer.format.dtype);
    cast_all(policy, offer.kind, {nan, -nan, infinity, -infinity, 1.0},
             [&](double x, uint32_t code) {
               const double got = format.decode(code);
               require(!std::isnan(x) || std::isnan(got),
                       [&] { return to_text(offer.kind) + ": NaN gives " + exact_text(got); });
               const bool may_saturate = saturates(context) && std::fabs(got) == format.largest();
               require(!std::isinf(x) || !std::isfinite(got) || may_saturate, [&] {
                 return to_text(offer.kind) + ": infinity gives " + exact_text(got) +
                        "; expected infinity or NaN, or the largest number with "
                        "\"cast:saturates\"";
               });
             });
  }
}

void cast_twice_is_cast_once(const TestContext& context) {
  const PolicyBench policy(context);
  for (const Offer& offer : readable_offers(context, policy, false)) {
    const FloatFormat& format = FloatFormat::of(offer.format.dtype);
    if (!same(offer.kind.in, kF32)) {
      continue;
    }
    std::vector<double> values;
    for (const double value : format.values()) {
      add_both_signs(values, value);
    }
    cast_all(policy, offer.kind, values, [&](double x, uint32_t code) {
      require(format.decode(code) == x && std::signbit(format.decode(code)) == std::signbit(x),
              [&] {
                return to_text(offer.kind) + ": " + exact_text(x) + " is a number of " +
                       dtype_name(offer.format.dtype) + ", and its cast is " +
                       exact_text(format.decode(code));
              });
    });
  }
}

}  // namespace ciuic::testing
