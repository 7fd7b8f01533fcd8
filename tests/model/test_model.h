// SPDX-License-Identifier: MIT
#pragma once

// A small model with random parameters and gradient views, as a sharding plugin would bind them.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/gradient.h"
#include "core/model/model.h"
#include "core/model/model_config.h"
#include "core/model/parameter_specs.h"

namespace ciuic::core::testing {

/// 3 layers (1 dense), sizes that divide by nothing convenient, expert groups.
ModelConfig small_config();

/// V2's router: softmax, greedy, weights times 16.
void make_v2(ModelConfig& config);
/// YaRN by a factor of 40 over `original` positions, with both mscales.
void make_yarn(ModelConfig& config, int64_t original);

/// Normal values that depend on (name, seed) alone.
at::Tensor normal(std::string_view name, std::vector<int64_t> shape, double deviation = 1.0,
                  at::ScalarType dtype = at::kDouble, uint64_t seed = 1);

/// Token ids in [0, vocab_size), the same every time.
at::Tensor some_tokens(int64_t batch, int64_t tokens, int64_t vocab_size, uint64_t seed = 1);

/// Parameters of a model with their gradients, all in one storage per unit, one after another, as
/// in a flat bucket.
class TestParameters {
 public:
  /// Norm weights vary around 1; router and norm weights are f32 when `dtype` is bf16 or f16.
  TestParameters(const ModelConfig& config, at::ScalarType dtype, double deviation = 0.3);

  /// A unit's bindings. `overwrite`: gradients are filled with NaN first.
  std::vector<Bound> bind(int64_t unit, bool overwrite);
  /// Without gradients.
  std::vector<Bound> bind_values(int64_t unit) const;

  const std::vector<ParameterSpec>& specs() const { return specs_; }
  const at::Tensor& value(const std::string& name) const { return values_.at(name); }
  const at::Tensor& gradient(const std::string& name) const { return gradients_.at(name); }
  const std::map<std::string, at::Tensor>& values() const { return values_; }
  void zero_gradients();
  /// Bindings of these parameters carry these hooks from here on.
  void set_hooks(std::map<std::string, const ModuleHook*> hooks) { hooks_ = std::move(hooks); }
  /// Puts a value elsewhere in memory.
  void move_value(const std::string& name, const at::Tensor& place) {
    values_.at(name) = place.copy_(values_.at(name));
  }
  /// From now on the parameter is bound without gradient.
  void freeze(const std::string& name) { frozen_ = name; }

 private:
  [[nodiscard]] const std::string& root(const ParameterSpec& spec) const;

  const ModuleHook* hook_of(const ParameterSpec& spec) const;

  std::vector<ParameterSpec> specs_;
  std::map<std::string, at::Tensor> values_, gradients_;
  std::map<std::string, const ModuleHook*> hooks_;
  std::string frozen_;
};

/// One micro-batch as the trainer runs it: returns the loss sum and leaves gradients in
/// `parameters`. `pass`: whole rows when it has none; its mode and seed are overridden.
/// `prediction_sum` gets the sum of multi-token prediction's losses.
double run_step(Model& model, TestParameters& parameters, const at::Tensor& tokens_BT,
                const at::Tensor& targets_BT, double seed, bool overwrite, Pass pass = {},
                double* prediction_sum = nullptr);

/// Forward only: logits [B, T, V].
at::Tensor run_logits(Model& model, const TestParameters& parameters, const at::Tensor& tokens_BT,
                      const Rows& rows = {});

/// ||a - b|| / ||b||, in f64; infinite where a has a NaN.
double relative_error(const at::Tensor& a, const at::Tensor& b);

bool same_bits(const at::Tensor& a, const at::Tensor& b);

}  // namespace ciuic::core::testing
