// SPDX-License-Identifier: MIT
//
// Optimizers of the kit's own, for tests of sharding plugins: offered behind "ciuic.optimizer", they
// compute plainly, keep what they were asked, and fail when told to.
//
//   ReferenceAdamW   element-wise, two moments of the master's type
//   ReferenceBlocks  needs blocks of `granule` elements whole; one state element a block
#pragma once

#include <cmath>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/optimizer.hpp>
#include <ciuic/testing/numbers.hpp>
#include <ciuic/testing/reference_rules.hpp>

namespace ciuic::testing {

/// An update as it was asked for.
struct SeenUpdate {
  uint64_t param;
  std::string name;
  int64_t begin, num_elements, granule;
  uint64_t update, seed;
  double lr, weight_decay, grad_scale;
  double param_weight_decay, param_lr_scale;
  bool has_master;
};

/// What both share. Any thread.
class ReferenceOptimizer : public Optimizer {
 public:
  using Optimizer::Optimizer;

  void update(ArrayView<ciuic_update> updates, const ciuic_stream*) const override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (failure_) {
        throw Error(failure_->code(), std::string(failure_->what()), failure_->peer());
      }
      for (const ciuic_update& u : updates) {
        seen_.push_back({u.param->id, std::string(to_view(u.param->name)), u.begin, u.num_elements,
                         u.param->granule, u.update, u.seed, u.lr, u.weight_decay, u.grad_scale,
                         u.param->weight_decay, u.param->lr_scale, u.master != nullptr});
      }
    }
    for (const ciuic_update& u : updates) {
      check_sizes(u);
      apply(u);
    }
  }

  /// As other plugins find it. Valid as long as this object.
  [[nodiscard]] const ciuic_kind_service* service() {
    service_ = {sizeof(service_), CIUIC_KIND_OPTIMIZER, &Optimizer::table(), to_handle(this)};
    return &service_;
  }
  /// Every later update fails so.
  void fail_with(const Error& error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_.emplace(error.code(), std::string(error.what()), error.peer());
  }
  /// What it was asked since the last call.
  [[nodiscard]] std::vector<SeenUpdate> take_seen() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(seen_, {});
  }

 protected:
  static RuleStep step_of(const ciuic_update& u) {
    return {u.update, u.lr, u.weight_decay, u.grad_scale};
  }
  static double grad_at(const ciuic_update& u, int64_t i) {
    return load_element(u.grad->t.dtype, element_at(*u.grad, i)) * u.grad_scale;
  }
  static const ciuic_tensor& master_of(const ciuic_update& u) {
    return u.master != nullptr ? *u.master : *u.value;
  }
  static double element(const ciuic_tensor& t, int64_t i) {
    return load_element(t.t.dtype, element_at(t, i));
  }
  static void set_element(const ciuic_tensor& t, int64_t i, double value) {
    store_element(t.t.dtype, element_at(t, i), value);
  }
  static void store_value(const ciuic_update& u, int64_t i, double value) {
    set_element(master_of(u), i, value);
    if (u.master != nullptr) {
      set_element(*u.value, i, value);
    }
  }

  virtual void apply(const ciuic_update& u) const = 0;
  /// Elements of state tensor `s` for a range of so many.
  [[nodiscard]] virtual int64_t state_elements(const ciuic_update& u, uint32_t s) const = 0;
  [[nodiscard]] virtual uint32_t num_states() const = 0;

 private:
  void check_sizes(const ciuic_update& u) const {
    const std::string who = "update of " + std::string(to_view(u.param->name)) + ": ";
    const auto expect = [&](const char* what, const ciuic_tensor& t, int64_t expected) {
      if (num_elements(t) != expected || t.t.ndim != 1) {
        throw Error(CIUIC_INVALID, who + what + " has " + std::to_string(num_elements(t)) +
                                       " elements in " + std::to_string(t.t.ndim) +
                                       " dimensions, expected " + std::to_string(expected) +
                                       " in one");
      }
    };
    expect("grad", *u.grad, u.num_elements);
    expect("value", *u.value, u.num_elements);
    if (u.master != nullptr) {
      expect("master", *u.master, u.num_elements);
    }
    if (u.num_state != num_states()) {
      throw Error(CIUIC_INVALID, who + std::to_string(u.num_state) + " state tensors, expected " +
                                     std::to_string(num_states()));
    }
    for (uint32_t s = 0; s < u.num_state; ++s) {
      expect("state", *u.state[s], state_elements(u, s));
    }
  }

  mutable std::mutex mutex_;
  mutable std::vector<SeenUpdate> seen_;
  std::optional<Error> failure_;
  ciuic_kind_service service_{};
};

class ReferenceAdamW final : public ReferenceOptimizer {
 public:
  /// Moments are kept in `moment`; it computes in double where that is f64, else in float.
  explicit ReferenceAdamW(const Host& host, ciuic_dtype moment = kF32, AdamWRule rule = {})
      : ReferenceOptimizer(host),
        rule_(rule),
        specs_{moment_spec("exp_avg", moment), moment_spec("exp_avg_sq", moment)} {}

  [[nodiscard]] const std::vector<ciuic_state_spec>& state_spec(const ciuic_param&) const override {
    return specs_;
  }

 private:
  [[nodiscard]] uint32_t num_states() const override { return 2; }
  [[nodiscard]] int64_t state_elements(const ciuic_update& u, uint32_t) const override {
    return u.num_elements;
  }
  void apply(const ciuic_update& u) const override {
    same(specs_[0].dtype, kF64) ? apply_in<double>(u) : apply_in<float>(u);
  }
  template <typename Real>
  void apply_in(const ciuic_update& u) const {
    const AdamWScalars<Real> scalars(rule_, step_of(u));
    for (int64_t i = 0; i < u.num_elements; ++i) {
      auto value = static_cast<Real>(element(master_of(u), i));
      auto mean = static_cast<Real>(element(*u.state[0], i));
      auto square = static_cast<Real>(element(*u.state[1], i));
      adamw_element(scalars, static_cast<Real>(grad_at(u, i)), value, mean, square);
      store_value(u, i, value);
      set_element(*u.state[0], i, mean);
      set_element(*u.state[1], i, square);
    }
  }

  AdamWRule rule_;
  std::vector<ciuic_state_spec> specs_;
};

/// value -= lr g / sqrt(sum over updates of the block's mean g^2): AdaGrad with a scale a block.
class ReferenceBlocks final : public ReferenceOptimizer {
 public:
  ReferenceBlocks(const Host& host, int64_t granule) : ReferenceOptimizer(host), granule_(granule) {
    specs_.push_back(moment_spec("block_sq", kF32, kInitial));
    specs_[0].granule = granule;
  }
  static constexpr double kInitial = 0.0625;  // not 0: a forgotten initial value shows

  [[nodiscard]] int64_t granule(const ciuic_param&) const override { return granule_; }
  [[nodiscard]] const std::vector<ciuic_state_spec>& state_spec(const ciuic_param&) const override {
    return specs_;
  }

  /// One block of `count` elements, through functions that read and write element i.
  template <typename Grad, typename Value>
  static void block(double lr, int64_t count, float& sum, Grad grad, Value value) {
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      squares += grad(i) * grad(i);
    }
    sum = static_cast<float>(sum + squares / static_cast<double>(count));
    for (int64_t i = 0; i < count; ++i) {
      value(i, lr * grad(i) / std::sqrt(static_cast<double>(sum)));
    }
  }

 private:
  [[nodiscard]] uint32_t num_states() const override { return 1; }
  [[nodiscard]] int64_t state_elements(const ciuic_update& u, uint32_t) const override {
    return (u.num_elements + granule_ - 1) / granule_;
  }
  void apply(const ciuic_update& u) const override {
    if (u.begin % granule_ != 0) {
      throw Error(CIUIC_INVALID, "update of " + std::string(to_view(u.param->name)) +
                                     " begins inside a granule: at " + std::to_string(u.begin) +
                                     ", granule " + std::to_string(granule_));
    }
    for (int64_t b = 0; b * granule_ < u.num_elements; ++b) {
      const int64_t first = b * granule_;
      auto sum = static_cast<float>(element(*u.state[0], b));
      block(
          u.lr, std::min(granule_, u.num_elements - first), sum,
          [&](int64_t i) { return grad_at(u, first + i); },
          [&](int64_t i, double delta) {
            store_value(u, first + i, element(master_of(u), first + i) - delta);
          });
      set_element(*u.state[0], b, sum);
    }
  }

  int64_t granule_;
  std::vector<ciuic_state_spec> specs_;
};

}  // namespace ciuic::testing
