// SPDX-License-Identifier: MIT
#include "gemm_bench.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <ciuic/testing/plain_product.hpp>

namespace ciuic::testing {
namespace {

constexpr double kF32Step = 0x1p-24;
constexpr double kFp8Accumulation = 0x1p-13;
constexpr double kChance = 8;  // Hoeffding: 2 exp(-8^2 / 2) = 3e-14

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) {
    n *= extent;
  }
  return n;
}

std::vector<int64_t> strides_of(const std::vector<int64_t>& shape, int64_t gap) {
  std::vector<int64_t> out(shape.size(), 1);
  for (size_t i = shape.size() - 1; i-- > 0;) {
    out[i] = out[i + 1] * shape[i + 1] + (i + 2 == shape.size() ? gap : 0);
  }
  return out;
}

double largest(const std::vector<double>& values) {
  double out = 0;
  for (const double x : values) {
    out = std::max(out, std::fabs(x));
  }
  return out;
}

double step_of(ciuic_dtype dtype) {
  return FloatFormat::knows(dtype) ? FloatFormat::of(dtype).epsilon()
                                   : (same(dtype, kF64) ? 0x1p-53 : kF32Step);
}

}  // namespace

Operand::Operand(ciuic_dtype dtype, std::vector<int64_t> shape, const std::vector<double>& values,
                 int64_t gap)
    : shape_(std::move(shape)),
      strides_(strides_of(shape_, gap)),
      memory_(static_cast<size_t>(shape_[0] * strides_[0] * dtype_bytes(dtype))) {
  std::memset(memory_.data(), 0xFF, memory_.size());
  tensor_.struct_size = sizeof(tensor_);
  tensor_.t = {memory_.size() == 0 ? nullptr : memory_.data(),
               {CIUIC_DEVICE_CPU, 0},
               static_cast<int32_t>(shape_.size()),
               dtype,
               shape_.data(),
               strides_.data(),
               0};
  set(values);
}

void Operand::set(const std::vector<double>& values) {
  for (int64_t i = 0; i < count_of(shape_); ++i) {
    store_element(tensor_.t.dtype, element_at(tensor_, i), values.at(static_cast<size_t>(i)));
  }
}

std::vector<double> Operand::values() const {
  std::vector<double> out;
  for (int64_t i = 0; i < count_of(shape_); ++i) {
    out.push_back(load_element(tensor_.t.dtype, element_at(tensor_, i)));
  }
  return out;
}

bool Operand::gaps_untouched() const {
  std::vector<bool> is_element(memory_.size());
  const int64_t bytes = dtype_bytes(tensor_.t.dtype);
  for (int64_t i = 0; i < count_of(shape_); ++i) {
    const auto at = element_at(tensor_, i) - memory_.data();
    std::fill_n(is_element.begin() + at, bytes, true);
  }
  for (size_t i = 0; i < is_element.size(); ++i) {
    if (!is_element[i] && static_cast<unsigned char>(memory_.data()[i]) != 0xFF) {
      return false;
    }
  }
  return true;
}

std::string to_text(const PassSetup& setup) {
  const char* name = "?";
  for (const Module& module : kModules) {
    name = module.id == setup.module ? module.name : name;
  }
  return std::string("gemm ") + pass_name(setup.pass) + " of " + name + " (" +
         std::to_string(setup.extents.tokens) + " tokens, " + std::to_string(setup.extents.in) +
         " in, " + std::to_string(setup.extents.out) + " out" +
         (setup.group_ends.empty() ? ""
                                   : ", " + std::to_string(setup.group_ends.size()) + " groups") +
         ")";
}

PassBench::PassBench(const PolicyBench& policy, const PassSetup& setup, uint64_t seed)
    : policy_(policy), setup_(setup), seed_(seed) {
  const auto [tokens, in, out] = setup.extents;
  const auto groups = static_cast<int64_t>(setup.group_ends.size());
  const std::vector<int64_t> x{tokens, in};
  const std::vector<int64_t> dy{tokens, out};
  const std::vector<int64_t> w =
      groups == 0 ? std::vector<int64_t>{out, in} : std::vector<int64_t>{groups, out, in};
  const char* name = "";
  for (const Module& module : kModules) {
    name = module.id == setup.module ? module.name : name;
  }
  const auto make = [&](uint32_t role, const std::vector<int64_t>& shape, uint64_t salt) {
    return std::make_unique<Operand>(policy.dtype_for(name, role), shape,
                                     varied_values(seed + salt, count_of(shape), -6, 1), setup.gap);
  };
  switch (setup.pass) {
    case CIUIC_GEMM_FORWARD:
      a_role_ = CIUIC_ROLE_ACTIVATION;
      b_role_ = CIUIC_ROLE_VALUE;
      flags_ = CIUIC_GEMM_TRANS_B;
      a_ = make(a_role_, x, 1);
      b_ = make(b_role_, w, 2);
      out_ = make(CIUIC_ROLE_ACTIVATION, dy, 3);
      break;
    case CIUIC_GEMM_GRAD_INPUT:
      a_role_ = CIUIC_ROLE_ACTIVATION_GRAD;
      b_role_ = CIUIC_ROLE_VALUE;
      a_ = make(a_role_, dy, 1);
      b_ = make(b_role_, w, 2);
      out_ = make(CIUIC_ROLE_ACTIVATION_GRAD, x, 3);
      break;
    default:
      a_role_ = CIUIC_ROLE_ACTIVATION_GRAD;
      b_role_ = CIUIC_ROLE_ACTIVATION;
      flags_ = CIUIC_GEMM_TRANS_A;
      a_ = make(a_role_, dy, 1);
      b_ = make(b_role_, x, 2);
      out_ = make(CIUIC_ROLE_GRAD, w, 3);
  }
  ends_shape_ = {groups};
  ends_ = Tensor(setup_.group_ends.data(), kI64, ends_shape_).c();
  ends_.t.shape = ends_shape_.data();
  ends_.t.strides = ends_stride_.data();
  const ciuic_dl& t = out_->c()->t;
  before_ = std::make_unique<Operand>(t.dtype, std::vector<int64_t>(t.shape, t.shape + t.ndim),
                                      out_->values(), setup.gap);
  prepare_out(false);
}

void PassBench::prepare_out(bool may_be_read) {
  const auto count = static_cast<int64_t>(out_->values().size());
  out_->set(may_be_read ? varied_values(seed_ + 9, count, -2, 3)
                        : std::vector<double>(static_cast<size_t>(count),
                                              std::numeric_limits<double>::quiet_NaN()));
  before_->set(out_->values());
}

void PassBench::set_b(uint64_t seed) {
  b_->set(varied_values(seed, static_cast<int64_t>(b_->values().size()), -6, 1));
}

ciuic_gemm PassBench::request(double alpha, double beta) const {
  ciuic_gemm out{};
  out.struct_size = sizeof(out);
  out.flags = flags_;
  out.module = setup_.module;
  out.pass = setup_.pass;
  out.alpha = alpha;
  out.beta = beta;
  out.a = a_->c();
  out.b = b_->c();
  out.out = out_->c();
  out.group_ends = setup_.group_ends.empty() ? nullptr : &ends_;
  return out;
}

Rounding PassBench::rounding_of(const CastKind& kind, const ciuic_tensor* t) const {
  const auto format = policy_.format(cast_of(kind, t));
  const char* name = "";
  for (const Module& module : kModules) {
    name = module.id == kind.module ? module.name : name;
  }
  const ciuic_dtype dtype = format ? format->dtype : policy_.dtype_for(name, CIUIC_ROLE_COMPUTE);
  if (!FloatFormat::knows(dtype)) {
    return {kF32Step, 0, false};
  }
  const FloatFormat& f = FloatFormat::of(dtype);
  const bool is_scaled = format && format->scale_elements > 0;
  // A scale wastes up to two bits of range (see block_tests.cpp).
  return {f.epsilon(), is_scaled ? 4 * f.smallest() / f.largest() / 2 : f.smallest() / 2,
          is_scaled};
}

void PassBench::expect_close(const ciuic_gemm& request, const std::string& what) const {
  const Rounding ra = rounding_of(a_cast(), a_->c());
  const Rounding rb = rounding_of(b_cast(), b_->c());
  const double da = ra.near_zero * (ra.is_scaled ? largest(a_->values()) : 1);
  const double db = rb.near_zero * (rb.is_scaled ? largest(b_->values()) : 1);
  const double spread = ra.relative + rb.relative + ra.relative * rb.relative;
  const bool is_fp8 = ra.is_scaled || rb.is_scaled;
  const double step_of_out = step_of(out_->c()->t.dtype);
  // The originals, not what was handed over: casts have other dtypes.
  ciuic_gemm plain = request;
  plain.a = a_->c();
  plain.b = b_->c();
  ciuic_gemm earlier = plain;
  earlier.out = before_->c();
  const std::vector<MatrixProduct> products = products_of(plain);
  const std::vector<MatrixProduct> befores = products_of(earlier);
  for (size_t g = 0; g < products.size(); ++g) {
    const MatrixProduct& p = products[g];
    for (int64_t i = 0; i < p.out.rows(); ++i) {
      for (int64_t j = 0; j < p.out.columns(); ++j) {
        double sum = 0;
        double absolute = 0;
        double rounding = 0;          // worst case
        double rounding_squares = 0;  // chance
        for (int64_t k = 0; k < p.a.columns(); ++k) {
          const double a = p.a.at(i, k);
          const double b = p.b.at(k, j);
          sum += a * b;
          absolute += std::fabs(a * b);
          const double error =
              std::fabs(a * b) * spread + std::fabs(a) * db + std::fabs(b) * da + da * db;
          rounding += error;
          rounding_squares += error * error;
        }
        const double old = request.beta == 0 ? 0 : befores[g].out.at(i, j);
        const double expected = request.alpha * sum + request.beta * old;
        const double accumulation =
            absolute * std::max(static_cast<double>(p.a.columns() + 2) * kF32Step,
                                is_fp8 ? kFp8Accumulation : 0);
        const double bound =
            1.05 * (std::fabs(request.alpha) *
                        (std::min(rounding, kChance * std::sqrt(rounding_squares)) + accumulation) +
                    (std::fabs(request.alpha) * absolute + std::fabs(request.beta * old)) *
                        (step_of_out + 2 * kF32Step)) +
            1e-30;
        const double got = p.out.at(i, j);
        require(std::fabs(got - expected) <= bound, [&] {
          return to_text(setup_) + what + ", alpha " + exact_text(request.alpha) + ", beta " +
                 exact_text(request.beta) + ": out[" + std::to_string(i) + ", " +
                 std::to_string(j) + "] is " + exact_text(got) + ", expected " +
                 exact_text(expected) + " within " + exact_text(bound);
        });
      }
    }
  }
}

std::vector<PassSetup> hooked_passes(const PolicyBench& policy, Extents extents) {
  std::vector<PassSetup> out;
  for (const Module& module : kModules) {
    for (uint32_t pass = CIUIC_GEMM_FORWARD; pass <= CIUIC_GEMM_GRAD_WEIGHT; ++pass) {
      if ((policy.hooks(module.id) & (1U << pass)) != 0) {
        out.push_back({module.id, pass, extents});
      }
    }
  }
  if (out.empty()) {
    throw NotOffered("hooks takes no pass of any module on the CPU");
  }
  return out;
}

bool run_or_refuse(const PolicyBench& policy, const ciuic_gemm& request, bool may_refuse,
                   const std::string& what) {
  const int32_t code = policy.gemm(request);
  require(code == CIUIC_OK || (may_refuse && code == CIUIC_UNIMPLEMENTED), [&] {
    return what + " failed, though hooks takes this pass: " + code_name(code) + ": " +
           policy.gemm_message();
  });
  return code == CIUIC_OK;
}

}  // namespace ciuic::testing
