// SPDX-License-Identifier: MIT
//
// Products on the test bench: the three passes of a linear module y = x W^T with operands in the
// policy's own dtypes, beside the same product in double with a bound on how far off it may be.
//
// The bound, an element: what rounding a and b to the cast's format may cost,
//
//   sum_k |a||b| (ea + eb + ea eb) + |a| db + |b| da + da db      e: half a step, relative
//                                                                 d: half a step near zero
// or, where many of them add up, 8 sqrt(sum of their squares): Hoeffding's bound for errors of
// mean 0 is passed with probability 3e-14. To this come the accumulation in f32 (FP8 tensor cores
// keep 14 bits: arXiv:2412.19437, sec. 3.5.2), and the rounding of out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cast_bench.hpp"

namespace ciuic::testing {

struct Extents {
  int64_t tokens;
  int64_t in;
  int64_t out;
};

/// A matrix, or matrices of equal shape, in guarded memory, with a gap between rows if wanted.
class Operand {
 public:
  Operand(ciuic_dtype dtype, std::vector<int64_t> shape, const std::vector<double>& values,
          int64_t gap = 0);
  [[nodiscard]] const ciuic_tensor* c() const { return &tensor_; }
  [[nodiscard]] std::vector<double> values() const;
  void set(const std::vector<double>& values);
  /// Bytes between rows are as they were at first.
  [[nodiscard]] bool gaps_untouched() const;

 private:
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  GuardedBytes memory_;
  ciuic_tensor tensor_{};
};

/// One pass of a module. Groups: [groups] row ends, for experts.
struct PassSetup {
  uint32_t module;
  uint32_t pass;
  Extents extents;
  std::vector<int64_t> group_ends = {};
  int64_t gap = 0;
};
std::string to_text(const PassSetup& setup);

/// How numbers are rounded on their way into a product.
struct Rounding {
  double relative;   // half a step
  double near_zero;  // half a step near zero, of the largest number (scaled) or absolute
  bool is_scaled;
};

class PassBench {
 public:
  PassBench(const PolicyBench& policy, const PassSetup& setup, uint64_t seed);

  [[nodiscard]] ciuic_gemm request(double alpha = 1, double beta = 0) const;
  /// out before a call, as numbers of its dtype; NaN when it may not be read.
  void prepare_out(bool may_be_read);
  void set_b(uint64_t seed);
  /// Fails when out is not alpha op(a) op(b) + beta * (out before) within the bound.
  void expect_close(const ciuic_gemm& request, const std::string& what) const;
  [[nodiscard]] std::vector<double> out_values() const { return out_->values(); }

  [[nodiscard]] const Operand& a() const { return *a_; }
  [[nodiscard]] const Operand& b() const { return *b_; }
  [[nodiscard]] const Operand& out() const { return *out_; }
  [[nodiscard]] CastKind a_cast() const {
    return {setup_.module, setup_.pass, a_role_, a_->c()->t.dtype};
  }
  [[nodiscard]] CastKind b_cast() const {
    return {setup_.module, setup_.pass, b_role_, b_->c()->t.dtype};
  }

 private:
  [[nodiscard]] Rounding rounding_of(const CastKind& kind, const ciuic_tensor* t) const;

  const PolicyBench& policy_;
  PassSetup setup_;
  uint64_t seed_;
  uint32_t a_role_ = 0;
  uint32_t b_role_ = 0;
  uint32_t flags_ = 0;
  std::vector<int64_t> ends_shape_;
  std::vector<int64_t> ends_stride_{1};
  ciuic_tensor ends_{};
  std::unique_ptr<Operand> a_;
  std::unique_ptr<Operand> b_;
  std::unique_ptr<Operand> out_;
  std::unique_ptr<Operand> before_;  // what out held when it was prepared
};

/// (module, pass) pairs that the policy hooks on the CPU. Throws NotOffered when there are none.
std::vector<PassSetup> hooked_passes(const PolicyBench& policy, Extents extents);

/// Runs the request. False: this shape or layout is refused (UNIMPLEMENTED), which the caller may
/// allow.
bool run_or_refuse(const PolicyBench& policy, const ciuic_gemm& request, bool may_refuse,
                   const std::string& what);

}  // namespace ciuic::testing
