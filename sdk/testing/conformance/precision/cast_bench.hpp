// SPDX-License-Identifier: MIT
//
// Casts on the test bench: which formats a policy offers, casts into memory of exactly the size
// that format says, and, where the policy declares the layout, the numbers that came out.
//
// The layout of a cast is the policy's own. The feature "cast:row_major" opens it to the kit: out
// is row-major in in's shape; scale element (i, j) belongs to block row i and block column j,
// row-major; a number is code x scale. Further features: "cast:saturates" (past the largest number
// comes the largest, not infinity or NaN), "scale:power_of_two", "scale:delayed" (scales come from
// earlier casts, so they need not fit).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ciuic/testing/float_format.hpp>

#include "policy_bench.hpp"

namespace ciuic::testing {

/// Which cast is meant.
struct CastKind {
  uint32_t module;
  uint32_t pass;
  uint32_t role;
  ciuic_dtype in;
};
std::string to_text(const CastKind& kind);

struct Offer {
  CastKind kind;
  ciuic_format format;  // of a 256 x 384 tensor
  [[nodiscard]] bool is_scaled() const { return format.scale_elements > 0; }
};

/// The different formats that a policy offers. Throws NotOffered when there are none.
std::vector<Offer> offers_of(const PolicyBench& policy);
/// Those whose numbers the kit can read: "cast:row_major", and known dtypes. Throws NotOffered.
std::vector<Offer> readable_offers(const TestContext& context, const PolicyBench& policy,
                                   bool scaled);

/// A matrix of `rows` x `columns`, stored with `row_stride` elements from row to row.
class CastInput {
 public:
  CastInput(ciuic_dtype dtype, int64_t rows, int64_t columns, const std::vector<double>& values,
            int64_t row_stride = 0);
  [[nodiscard]] const ciuic_tensor* c() const { return tensor_->get(); }
  [[nodiscard]] int64_t rows() const { return shape_[0]; }
  [[nodiscard]] int64_t columns() const { return shape_[1]; }
  /// As stored: rounded to the dtype.
  [[nodiscard]] double at(int64_t row, int64_t column) const;
  void forbid_data() const { data_.forbid(); }

 private:
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  GuardedBytes data_;
  std::unique_ptr<GuardedStruct<ciuic_tensor>> tensor_;
};

/// The result of a cast.
class CastResult {
 public:
  CastResult(const PolicyBench& policy, const CastKind& kind, const CastInput& in);

  [[nodiscard]] const ciuic_format& format() const { return format_; }
  [[nodiscard]] const ciuic_tensor* out() const { return &out_.c(); }
  [[nodiscard]] const ciuic_tensor* scale() const {
    return format_.scale_elements > 0 ? &scale_.c() : nullptr;
  }
  /// out has in's shape, so it can stand in a product.
  [[nodiscard]] bool has_shape_of_in() const { return out_.shape().size() == 2; }
  [[nodiscard]] std::string bytes() const;

  // Only for "cast:row_major".
  [[nodiscard]] int64_t block_rows() const;
  [[nodiscard]] int64_t block_columns() const;
  [[nodiscard]] int64_t blocks_across() const;
  [[nodiscard]] uint32_t code(int64_t row, int64_t column) const;
  [[nodiscard]] double scale_of(int64_t row, int64_t column) const;  // 1 without scales
  [[nodiscard]] double value(int64_t row, int64_t column) const;

 private:
  ciuic_format format_;
  int64_t rows_;
  int64_t columns_;
  std::unique_ptr<GuardedBytes> out_memory_;
  std::unique_ptr<GuardedBytes> scale_memory_;
  Tensor out_;
  Tensor scale_;
};

/// The request, for policy.format and policy.cast.
ciuic_cast cast_of(const CastKind& kind, const ciuic_tensor* in, const ciuic_tensor* out = nullptr,
                   const ciuic_tensor* scale = nullptr);

/// Numbers of many magnitudes, both signs, some zero.
std::vector<double> varied_values(uint64_t seed, int64_t count, int lowest_exponent = -12,
                                  int highest_exponent = 6);
std::string exact_text(double value);

}  // namespace ciuic::testing
