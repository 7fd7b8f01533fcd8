// SPDX-License-Identifier: MIT
#include "core/model/model.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <ciuic/error.hpp>

#include "core/bench/step_clock.h"
#include "core/model/kernels/dtypes.h"
#include "core/model/kernels/embedding.h"

namespace ciuic::core {
namespace {

ModelConfig checked(ModelConfig config) {
  const std::vector<std::string> found = problems(config);
  if (!found.empty()) {
    std::string message = "model:";
    for (const std::string& problem : found) {
      message += "\n  " + problem;
    }
    throw Error(CIUIC_INVALID, message);
  }
  return config;
}

std::vector<std::pair<int64_t, int64_t>> ranges_by_unit(
    const std::vector<ParameterSpec>& parameters, int64_t units) {
  std::vector<std::pair<int64_t, int64_t>> ranges(units);
  for (int64_t i = 0, unit = 0; unit < units; ++unit) {
    ranges[unit].first = i;
    while (i < static_cast<int64_t>(parameters.size()) && parameters[i].unit == unit) {
      ++i;
    }
    ranges[unit].second = i;
  }
  return ranges;
}

// A row outside the embedding would be someone else's memory.
void check_tokens(const at::Tensor& tokens_BT, int64_t vocab_size) {
  const at::Tensor host = tokens_BT.cpu().contiguous();
  const auto* token = host.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < host.numel(); ++i) {
    if (token[i] < 0 || token[i] >= vocab_size) {
      throw Error(CIUIC_INVALID, "model: token " + std::to_string(token[i]) + ", expected 0 to " +
                                     std::to_string(vocab_size - 1) +
                                     " (vocab_size); tokenizer and model do not fit");
    }
  }
}

}  // namespace

Model::Model(ModelConfig config, at::ScalarType activation, at::Device device,
             const ExpertShare& share)
    : config_(checked(std::move(config))),
      activation_(activation),
      device_(device),
      parameters_(parameter_specs(config_, share)),
      unit_ranges_(ranges_by_unit(parameters_, num_units())),
      head_(config_),
      rotary_(config_, kernels::accumulate_dtype(activation), device) {
  for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
    layers_.emplace_back(config_, layer, share);
  }
  for (int64_t layer = config_.num_hidden_layers; layer < config_.num_layers(); ++layer) {
    predictions_.emplace_back(config_, layer, share);
  }
  const std::vector<int64_t> shape = {config_.num_moe_layers(), config_.n_routed_experts};
  expert_bias_ = at::zeros(shape, at::TensorOptions().dtype(at::kFloat).device(device));
  expert_loads_ = at::zeros(shape, at::TensorOptions().dtype(at::kLong));
}

Model::~Model() = default;

std::span<const ParameterSpec> Model::unit_parameters(int64_t unit) const {
  const auto [first, last] = unit_ranges_.at(unit);
  return std::span(parameters_).subspan(first, last - first);
}

at::Tensor Model::embed(Bindings unit, const at::Tensor& tokens_BT) {
  const PartSpan part(Part::Embedding);
  const c10::InferenceMode no_tape;
  check_bindings(0, unit);
  check_tokens(tokens_BT, config_.vocab_size);
  return unit[0]
      .value.index_select(0, tokens_BT.flatten())
      .to(activation_)
      .view({tokens_BT.size(0), tokens_BT.size(1), config_.hidden_size});
}

void Model::embed_backward(Bindings unit, const at::Tensor& tokens_BT,
                           const at::Tensor& dhidden_BTD) {
  const PartSpan part(Part::Embedding);
  const c10::InferenceMode no_tape;
  check_bindings(0, unit);
  check_tokens(tokens_BT, config_.vocab_size);
  if (!unit[0].grad.defined()) {
    return;
  }
  accumulate_nothing(unit[0]);  // zeros, if need be: most rows get no token
  if (embedding_gradient_scale_ == 0) {
    return;
  }
  at::Tensor rows_ND = dhidden_BTD.flatten(0, 1);
  if (embedding_gradient_scale_ != 1) {
    rows_ND = rows_ND.to(unit[0].grad.scalar_type()).mul(embedding_gradient_scale_);
  }
  kernels::add_rows_at_(unit[0].grad, tokens_BT.flatten().contiguous(), rows_ND);
}

at::Tensor Model::forward(int64_t unit, Bindings bindings, const at::Tensor& hidden_BTD,
                          const Pass& pass, LayerTape* tape) {
  const c10::InferenceMode no_tape;
  check_bindings(unit, bindings);
  const int64_t layer = unit - 1;
  return layers_.at(layer).forward(bindings, hidden_BTD,
                                   {pass.rows, rotary_for(pass.rows.num_positions())},
                                   router_pass(layer, pass, /*counts=*/true), pass.recompute, tape);
}

at::Tensor Model::extend(int64_t unit, Bindings bindings, const at::Tensor& hidden_BTD,
                         const LatentCache& cache) {
  const c10::InferenceMode no_tape;
  check_bindings(unit, bindings);
  const int64_t layer = unit - 1;
  const at::Tensor cached_TC = cache.layer(layer);
  TORCH_CHECK(hidden_BTD.size(0) == 1 && hidden_BTD.size(1) == cache.added(),
              "Model::extend: hidden states ", hidden_BTD.sizes(), ", and the cache has room for ",
              cache.added(), " tokens");
  const Pass pass{whole_rows(1, cache.added()), Mode::Evaluate, {}, {}};
  return layers_.at(layer)
      .forward_cached(bindings, hidden_BTD.flatten(0, 1), cached_TC, rotary_for(cached_TC.size(0)),
                      router_pass(layer, pass, /*counts=*/false))
      .view_as(hidden_BTD);
}

at::Tensor Model::backward(int64_t unit, Bindings bindings, const at::Tensor& dhidden_BTD,
                           const Pass& pass, LayerTape& tape) {
  const c10::InferenceMode no_tape;
  check_bindings(unit, bindings);
  TORCH_CHECK(!tape.is_empty(), "Model::backward: the tape of unit ", unit, " is empty");
  const int64_t layer = unit - 1;
  return layers_.at(layer).backward(bindings, dhidden_BTD,
                                    {pass.rows, rotary_for(pass.rows.num_positions())},
                                    router_pass(layer, pass, /*counts=*/false), tape);
}

bool Model::serves(int64_t unit) const {
  return exchange_ != nullptr && unit > 0 && unit < head_unit() && config_.is_moe_layer(unit - 1);
}

/// The layer of a unit; `bindings` become that layer's.
const DecoderLayer& Model::layer_of(int64_t unit, Bindings& bindings) const {
  if (unit <= last_layer_unit()) {
    return layers_.at(unit - 1);
  }
  bindings = PredictionLayer::layer_weights(bindings);
  return predictions_.at(unit - last_layer_unit() - 1).layer();
}

void Model::serve(int64_t unit, Bindings bindings, Recompute recompute, LayerTape* tape) {
  const c10::InferenceMode no_tape;
  check_bindings(unit, bindings);
  const DecoderLayer& layer = layer_of(unit, bindings);
  layer.serve(bindings, at::TensorOptions(device_).dtype(activation_), *exchange_, recompute, tape);
}

void Model::serve_backward(int64_t unit, Bindings bindings, LayerTape& tape) {
  const c10::InferenceMode no_tape;
  check_bindings(unit, bindings);
  const std::span<const ParameterSpec> specs = unit_parameters(unit);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].is_expert) {
      accumulate_nothing(bindings[i]);
    }
  }
  const DecoderLayer& layer = layer_of(unit, bindings);
  layer.serve_backward(bindings, at::TensorOptions(device_).dtype(activation_), *exchange_, tape);
}

PredictionLayer::Output Model::predict(int64_t depth, Bindings bindings,
                                       const at::Tensor& embedded_BTD, const at::Tensor& hidden_BTD,
                                       const Pass& pass, PredictionTape* tape) {
  const c10::InferenceMode no_tape;
  check_bindings(depth_unit(depth), bindings);
  const int64_t layer = config_.num_hidden_layers + depth - 1;
  return predictions_.at(depth - 1).forward(
      bindings, embedded_BTD, hidden_BTD, {pass.rows, rotary_for(pass.rows.num_positions())},
      router_pass(layer, pass, /*counts=*/true), pass.recompute, tape);
}

PredictionLayer::Gradient Model::predict_backward(int64_t depth, Bindings bindings,
                                                  const at::Tensor& dnormed_BTD,
                                                  const at::Tensor& dhidden_BTD, const Pass& pass,
                                                  PredictionTape& tape) {
  const c10::InferenceMode no_tape;
  check_bindings(depth_unit(depth), bindings);
  TORCH_CHECK(!tape.layer.is_empty(), "Model::predict_backward: the tape of depth ", depth,
              " is empty");
  const int64_t layer = config_.num_hidden_layers + depth - 1;
  return predictions_.at(depth - 1).backward(bindings, dnormed_BTD, dhidden_BTD,
                                             {pass.rows, rotary_for(pass.rows.num_positions())},
                                             router_pass(layer, pass, /*counts=*/false), tape);
}

HeadGradient Model::head_loss_and_backward(Bindings unit, const at::Tensor& hidden_BTD,
                                           const at::Tensor& targets_BT, double seed) {
  const c10::InferenceMode no_tape;
  check_bindings(head_unit(), unit);
  return head_.loss_and_backward(unit, hidden_BTD, targets_BT, seed);
}

HeadGradient Model::predicted_loss_and_backward(Bindings unit, const at::Tensor& normed_BTD,
                                                const at::Tensor& targets_BT, double seed) {
  const c10::InferenceMode no_tape;
  check_bindings(head_unit(), unit);
  return head_.predicted_loss_and_backward(unit, normed_BTD, targets_BT, seed);
}

HeadLoss Model::predicted_loss(Bindings unit, const at::Tensor& normed_BTD,
                               const at::Tensor& targets_BT) {
  const c10::InferenceMode no_tape;
  check_bindings(head_unit(), unit);
  return head_.predicted_loss(unit, normed_BTD, targets_BT);
}

HeadLoss Model::head_loss(Bindings unit, const at::Tensor& hidden_BTD,
                          const at::Tensor& targets_BT) {
  const c10::InferenceMode no_tape;
  check_bindings(head_unit(), unit);
  return head_.loss(unit, hidden_BTD, targets_BT);
}

at::Tensor Model::head_logits(Bindings unit, const at::Tensor& hidden_BTD) {
  const c10::InferenceMode no_tape;
  check_bindings(head_unit(), unit);
  return head_.logits(unit, hidden_BTD);
}

void Model::reset_expert_loads() {
  const c10::InferenceMode no_tape;
  expert_loads_.zero_();
}

void Model::update_expert_bias(const at::Tensor& loads_ME, double rate) {
  const c10::InferenceMode no_tape;
  if (!config_.has_correction_bias()) {
    return;
  }
  const at::Tensor loads = loads_ME.to(at::kDouble);
  const at::Tensor direction = loads.mean({1}, /*keepdim=*/true).sub(loads).sign();
  expert_bias_.add_(direction.to(device_, at::kFloat), rate);
}

std::vector<std::pair<std::string, at::Tensor>> Model::expert_biases() const {
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const BufferSpec& buffer : buffer_specs(config_)) {
    named.emplace_back(buffer.name, expert_bias_.select(0, static_cast<int64_t>(named.size())));
  }
  return named;
}

void Model::check_bindings(int64_t unit, Bindings bindings) const {
  const std::span<const ParameterSpec> specs = unit_parameters(unit);
  TORCH_CHECK(bindings.size() == specs.size(), "Model: unit ", unit, " has ", specs.size(),
              " parameters, got ", bindings.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    const Bound& bound = bindings[i];
    const bool fits = bound.value.defined() &&
                      bound.value.sizes() == at::IntArrayRef(specs[i].shape) &&
                      bound.value.is_contiguous() &&
                      (!bound.grad.defined() ||
                       (bound.grad.sizes() == bound.value.sizes() && bound.grad.is_contiguous()));
    TORCH_CHECK(fits, "Model: the binding of ", specs[i].name,
                " does not have the parameter's shape, contiguous");
  }
}

RouterPass Model::router_pass(int64_t layer, const Pass& pass, bool counts) {
  RouterPass router;
  if (config_.is_moe_layer(layer)) {
    const int64_t mixture = config_.mixture_of_layer(layer);
    router.bias_E = expert_bias_.select(0, mixture);
    router.num_sequences = pass.rows.count;
    router.objective = pass.objective;
    router.exchange = exchange_;
    if (pass.mode == Mode::Train) {
      router.terms = &terms_;
      router.noise = {pass.objective.router_noise, pass.seed, layer, pass.rows.samples};
      router.loads_E = counts ? expert_loads_.select(0, mixture) : at::Tensor();
    }
  }
  return router;
}

const Rotary& Model::rotary_for(int64_t num_positions) {
  if (num_positions > config_.max_position_embeddings) {
    throw Error(CIUIC_INVALID,
                "model: a sequence of " + std::to_string(num_positions) +
                    " tokens, expected at most " + std::to_string(config_.max_position_embeddings) +
                    " (max_position_embeddings); shorten data.sequence_tokens or raise it");
  }
  rotary_.reserve(num_positions);
  return rotary_;
}

}  // namespace ciuic::core
