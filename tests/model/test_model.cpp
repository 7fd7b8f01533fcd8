// SPDX-License-Identifier: MIT
#include "tests/model/test_model.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#include "core/model/initial_values.h"

namespace ciuic::core::testing {

ModelConfig small_config() {
  ModelConfig c;
  c.vocab_size = 37;
  c.hidden_size = 24;
  c.num_hidden_layers = 3;
  c.first_k_dense_replace = 1;
  c.intermediate_size = 30;
  c.max_position_embeddings = 512;
  c.num_attention_heads = c.num_key_value_heads = 3;
  c.q_lora_rank = 20;
  c.kv_lora_rank = 12;
  c.qk_nope_head_dim = 8;
  c.qk_rope_head_dim = 4;
  c.v_head_dim = 6;
  c.moe_intermediate_size = 10;
  c.n_routed_experts = 8;
  c.n_shared_experts = 1;
  c.num_experts_per_tok = 3;
  c.n_group = 4;
  c.topk_group = 2;
  return c;
}

void make_v2(ModelConfig& c) {
  c.model_type = "deepseek_v2";
  c.scoring_func = "softmax";
  c.topk_method = "greedy";
  c.norm_topk_prob = false;
  c.routed_scaling_factor = 16;
}

void make_yarn(ModelConfig& c, int64_t original) {
  c.rope_parameters.rope_type = "yarn";
  c.rope_parameters.factor = 40;
  c.rope_parameters.original_max_position_embeddings = original;
  c.rope_parameters.mscale = 0.9;
  c.rope_parameters.mscale_all_dim = 0.7;
}

at::Tensor normal(std::string_view name, std::vector<int64_t> shape, double deviation,
                  at::ScalarType dtype, uint64_t seed) {
  at::Tensor values = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  const ParameterSpec spec{std::string(name), shape, 0, false, Init::Normal};
  fill_initial_values(spec, deviation, seed, 0,
                      {values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())});
  return values.to(dtype);
}

at::Tensor some_tokens(int64_t batch, int64_t tokens, int64_t vocab_size, uint64_t seed) {
  const at::Tensor uniform = normal("tokens", {batch, tokens}, 1000.0, at::kDouble, seed).abs();
  return uniform.floor().remainder(static_cast<double>(vocab_size)).to(at::kLong);
}

TestParameters::TestParameters(const ModelConfig& config, at::ScalarType dtype, double deviation)
    : specs_(parameter_specs(config)) {
  const at::ScalarType grad_dtype = dtype == at::kDouble ? at::kDouble : at::kFloat;
  for (int64_t unit = 0; unit < num_units(config); ++unit) {
    int64_t size = 0;
    for (const ParameterSpec& spec : specs_) {
      size += spec.unit == unit && !spec.is_tied() ? spec.num_elements() : 0;
    }
    const at::Tensor flat_values = at::empty({size}, at::TensorOptions().dtype(dtype));
    const at::Tensor flat_gradients = at::zeros({size}, at::TensorOptions().dtype(grad_dtype));
    int64_t offset = 0;
    for (const ParameterSpec& spec : specs_) {
      if (spec.unit != unit || spec.is_tied()) {
        continue;
      }
      const at::Tensor value = flat_values.narrow(0, offset, spec.num_elements()).view(spec.shape);
      const bool is_norm = spec.init == Init::Ones;
      value.copy_(normal(spec.name, spec.shape, spec.init == Init::Normal ? deviation : 0.1)
                      .add(is_norm ? 1.0 : 0.0));
      const bool stays_wide = (dtype == at::kBFloat16 || dtype == at::kHalf) &&
                              (is_norm || spec.name.ends_with("mlp.gate.weight"));
      values_[spec.name] = stays_wide ? value.to(at::kFloat) : value;
      gradients_[spec.name] =
          flat_gradients.narrow(0, offset, spec.num_elements()).view(spec.shape);
      offset += spec.num_elements();
    }
  }
}

const std::string& TestParameters::root(const ParameterSpec& spec) const {
  return spec.is_tied() ? specs_[static_cast<size_t>(spec.tied_to)].name : spec.name;
}

const ModuleHook* TestParameters::hook_of(const ParameterSpec& spec) const {
  const auto found = hooks_.find(spec.name);
  return found == hooks_.end() ? nullptr : found->second;
}

// The first use of a gradient in a step writes it: of a tied one that is the head's.
std::vector<Bound> TestParameters::bind(int64_t unit, bool overwrite) {
  std::vector<Bound> bound;
  for (const ParameterSpec& spec : specs_) {
    if (spec.unit != unit) {
      continue;
    }
    const std::string& name = root(spec);
    if (name == frozen_) {
      bound.push_back({values_[name], {}, false});
      continue;
    }
    const bool is_written = unit == 0 && specs_.back().is_tied();
    if (overwrite && !is_written) {
      gradients_[name].fill_(std::numeric_limits<double>::quiet_NaN());
    }
    bound.push_back({values_[name], gradients_[name], overwrite && !is_written, hook_of(spec)});
  }
  return bound;
}

std::vector<Bound> TestParameters::bind_values(int64_t unit) const {
  std::vector<Bound> bound;
  for (const ParameterSpec& spec : specs_) {
    if (spec.unit == unit) {
      bound.push_back({values_.at(root(spec)), {}, false, hook_of(spec)});
    }
  }
  return bound;
}

void TestParameters::zero_gradients() {
  for (auto& [name, gradient] : gradients_) {
    gradient.zero_();
  }
}

double run_step(Model& model, TestParameters& parameters, const at::Tensor& tokens_BT,
                const at::Tensor& targets_BT, double seed, bool overwrite, Pass pass,
                double* prediction_sum) {
  if (pass.rows.count == 0) {
    pass.rows = whole_rows(tokens_BT.size(0), tokens_BT.size(1));
  }
  pass.mode = Mode::Train;
  pass.objective.seed = seed;
  const int64_t layers = model.last_layer_unit();
  const int64_t depths = model.num_depths();
  std::vector<LayerTape> tapes(layers);
  at::Tensor hidden = model.embed(parameters.bind_values(0), tokens_BT);
  for (int64_t unit = 1; unit <= layers; ++unit) {
    hidden = model.forward(unit, parameters.bind_values(unit), hidden, pass, &tapes[unit - 1]);
  }
  std::vector<PredictionTape> prediction_tapes(depths);
  std::vector<PredictionLayer::Output> predictions;
  for (int64_t depth = 1; depth <= depths; ++depth) {
    const at::Tensor embedded =
        model.embed(parameters.bind_values(0), shifted(tokens_BT, depth, 0));
    predictions.push_back(model.predict(
        depth, parameters.bind_values(model.depth_unit(depth)), embedded,
        depth == 1 ? hidden : predictions.back().hidden_BTD, pass, &prediction_tapes[depth - 1]));
  }
  const std::vector<Bound> head_bound = parameters.bind(model.head_unit(), overwrite);
  const HeadGradient head = model.head_loss_and_backward(head_bound, hidden, targets_BT, seed);
  at::Tensor dhidden = head.dhidden;
  std::vector<at::Tensor> dnormed;
  for (int64_t depth = 1; depth <= depths; ++depth) {
    const HeadGradient predicted = model.predicted_loss_and_backward(
        head_bound, predictions[depth - 1].normed_BTD,
        prediction_targets(targets_BT, pass.rows, depth),
        seed * pass.objective.prediction / static_cast<double>(depths));
    dnormed.push_back(predicted.dhidden);
    if (prediction_sum != nullptr) {
      *prediction_sum += predicted.loss_sum;
    }
  }
  std::vector<at::Tensor> dembedded(depths);
  at::Tensor dnext;
  for (int64_t depth = depths; depth > 0; --depth) {
    const PredictionLayer::Gradient g =
        model.predict_backward(depth, parameters.bind(model.depth_unit(depth), overwrite),
                               dnormed[depth - 1], dnext, pass, prediction_tapes[depth - 1]);
    dembedded[depth - 1] = g.dembedded_BTD;
    dnext = g.dhidden_BTD;
  }
  dhidden = dnext.defined() ? dhidden.add(dnext) : dhidden;
  for (int64_t unit = layers; unit >= 1; --unit) {
    dhidden =
        model.backward(unit, parameters.bind(unit, overwrite), dhidden, pass, tapes[unit - 1]);
  }
  model.embed_backward(parameters.bind(0, overwrite), tokens_BT, dhidden);
  for (int64_t depth = 1; depth <= depths; ++depth) {
    model.embed_backward(parameters.bind(0, false), shifted(tokens_BT, depth, 0),
                         dembedded[depth - 1]);
  }
  return head.loss_sum;
}

at::Tensor run_logits(Model& model, const TestParameters& parameters, const at::Tensor& tokens_BT,
                      const Rows& rows) {
  const Pass pass{rows.count > 0 ? rows : whole_rows(tokens_BT.size(0), tokens_BT.size(1)),
                  Mode::Evaluate,
                  {},
                  {}};
  at::Tensor hidden = model.embed(parameters.bind_values(0), tokens_BT);
  for (int64_t unit = 1; unit <= model.last_layer_unit(); ++unit) {
    hidden = model.forward(unit, parameters.bind_values(unit), hidden, pass, nullptr);
  }
  return model.head_logits(parameters.bind_values(model.head_unit()), hidden);
}

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  const double difference =
      at::linalg_vector_norm(a.to(at::kDouble).sub(b.to(at::kDouble))).item<double>();
  const double size = at::linalg_vector_norm(b.to(at::kDouble)).item<double>();
  if (std::isnan(difference)) {
    return std::numeric_limits<double>::infinity();
  }
  return difference == 0 ? 0 : difference / size;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.contiguous();
  const at::Tensor y = b.contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

}  // namespace ciuic::core::testing
