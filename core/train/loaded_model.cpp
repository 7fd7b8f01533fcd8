// SPDX-License-Identifier: MIT
#include "core/train/loaded_model.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include "core/train/archive_model.h"
#include "core/train/model_files.h"
#include "core/train/run_folder.h"

namespace ciuic::core {
namespace {

/// Each row is one document; nothing is counted.
Pass evaluation(const at::Tensor& tokens_BT) {
  return {whole_rows(tokens_BT.size(0), tokens_BT.size(1)), Mode::Evaluate, {}, {}};
}

}  // namespace

LoadedModel::LoadedModel(const std::string& path, const ArchiveOpener& opener, const Types& types,
                         bool with_gradients)
    : source_(resolve_model_path(path)) {
  const c10::InferenceMode no_autograd;
  const OpenArchive archive = opener.open(source_);
  ArchivedModel found = read_model(*archive);
  notes_ = std::move(found.notes);
  const ModelConfig& config = found.config;
  if (const std::vector<std::string> all = problems(config); !all.empty()) {
    Failure failure(ExitCode::Usage, all.front(), "", {{"file", source_ + "/config.json"}});
    for (size_t i = 1; i < all.size(); ++i) {
      failure.detail(all[i]);
    }
    throw failure;
  }
  const ArchiveSource source(*archive);
  check_tensors(source, config, source_);
  check_copies(source, config, source_);
  model_ = std::make_unique<Model>(config, types.activation, at::Device(at::kCPU));
  precision_ = types.precision;
  if (precision_) {
    policy_gemm_ = std::make_unique<PolicyGemm>(*precision_, model_->parameters());
    model_->set_hooks(policy_gemm_->hooks());
  }
  load_expert_biases(source, model_->expert_biases());
  size_t index = 0;
  for (int64_t unit = 0; unit < model_->num_units(); ++unit) {
    std::vector<Bound> bound;
    for (const ParameterSpec& spec : model_->unit_parameters(unit)) {
      const ModuleHook* hook = model_->hook(index++);
      if (spec.is_tied()) {
        bound.push_back(parameter(spec.tied_to));
        continue;
      }
      Bound b;
      b.hook = hook;
      b.value = at::empty(spec.shape, types.value(spec.name));
      const Place place(spec.shape);
      // Masters are the better copy where a checkpoint has both.
      if (!source.read("master/" + spec.name, place.c(), b.value) &&
          !source.read("value/" + spec.name, place.c(), b.value)) {
        throw Failure(ExitCode::Storage, "missing: " + spec.name, "", {{"file", source_}});
      }
      if (with_gradients) {
        b.grad = at::zeros(spec.shape, at::kFloat);
      }
      bound.push_back(std::move(b));
    }
    units_.push_back(std::move(bound));
  }
}

const Bound& LoadedModel::parameter(int64_t index) const {
  size_t left = static_cast<size_t>(index);
  for (const std::vector<Bound>& unit : units_) {
    if (left < unit.size()) {
      return unit[left];
    }
    left -= unit.size();
  }
  throw Error(CIUIC_INTERNAL, "parameter " + std::to_string(index) + " is not loaded");
}

Bindings LoadedModel::bindings(int64_t unit) const { return units_[static_cast<size_t>(unit)]; }

at::Tensor LoadedModel::hidden(const at::Tensor& tokens_BT, const Pass& pass,
                               std::vector<LayerTape>* tapes) {
  at::Tensor x = model_->embed(bindings(0), tokens_BT);
  for (int64_t unit = 1; unit <= model_->last_layer_unit(); ++unit) {
    LayerTape* tape = tapes == nullptr ? nullptr : &(*tapes)[static_cast<size_t>(unit)];
    x = model_->forward(unit, bindings(unit), x, pass, tape);
  }
  return x;
}

at::Tensor LoadedModel::logits(const at::Tensor& tokens_BT, bool last_only) {
  const c10::InferenceMode no_autograd;
  at::Tensor x = hidden(tokens_BT, evaluation(tokens_BT), nullptr);
  if (last_only) {
    x = x.narrow(1, x.size(1) - 1, 1).contiguous();
  }
  return model_->head_logits(bindings(model_->head_unit()), x);
}

at::Tensor LoadedModel::chosen_experts(const at::Tensor& tokens_BT) {
  const c10::InferenceMode no_autograd;
  const Pass pass = evaluation(tokens_BT);
  std::vector<at::Tensor> chosen;
  at::Tensor x = model_->embed(bindings(0), tokens_BT);
  for (int64_t unit = 1; unit <= model_->last_layer_unit(); ++unit) {
    LayerTape tape;
    x = model_->forward(unit, bindings(unit), x, pass, &tape);
    if (config().is_moe_layer(unit - 1)) {
      chosen.push_back(tape.mixture.routing.experts_NK);
    }
  }
  return chosen.empty() ? at::empty({0, tokens_BT.numel(), config().num_experts_per_tok}, at::kInt)
                        : at::stack(chosen);
}

std::vector<float> LoadedModel::next_logits(std::span<const int64_t> tokens, LatentCache& cache) {
  const c10::InferenceMode no_autograd;
  const auto count = static_cast<int64_t>(tokens.size());
  const at::Tensor tokens_BT = at::empty({1, count}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), tokens_BT.mutable_data_ptr<int64_t>());
  cache.begin(count);
  at::Tensor x = model_->embed(bindings(0), tokens_BT);
  for (int64_t unit = 1; unit <= model_->last_layer_unit(); ++unit) {
    x = model_->extend(unit, bindings(unit), x, cache);
  }
  cache.commit();
  const at::Tensor logits_V =
      model_->head_logits(bindings(model_->head_unit()), x.narrow(1, count - 1, 1).contiguous())
          .to(at::kFloat)
          .flatten();
  const float* first = logits_V.const_data_ptr<float>();
  return {first, first + logits_V.numel()};
}

LoadedModel::Loss LoadedModel::loss(const at::Tensor& tokens_BT, const at::Tensor& targets_BT,
                                    const at::Tensor& document_starts_BT) {
  const c10::InferenceMode no_autograd;
  Pass pass = evaluation(tokens_BT);
  if (document_starts_BT.defined()) {
    pass.rows = document_rows(document_starts_BT);
  }
  const HeadLoss head = model_->head_loss(bindings(model_->head_unit()),
                                          hidden(tokens_BT, pass, nullptr), targets_BT);
  return {head.loss_sum, head.num_tokens};
}

LoadedModel::Loss LoadedModel::loss_and_gradients(const at::Tensor& tokens_BT,
                                                  const at::Tensor& targets_BT, double seed) {
  const c10::InferenceMode no_autograd;
  const Pass pass = evaluation(tokens_BT);
  std::vector<LayerTape> tapes(static_cast<size_t>(model_->num_units()));
  const at::Tensor last = hidden(tokens_BT, pass, &tapes);
  HeadGradient head =
      model_->head_loss_and_backward(bindings(model_->head_unit()), last, targets_BT, seed);
  at::Tensor dx = std::move(head.dhidden);
  for (int64_t unit = model_->last_layer_unit(); unit > 0; --unit) {
    dx = model_->backward(unit, bindings(unit), dx, pass, tapes[static_cast<size_t>(unit)]);
  }
  model_->embed_backward(bindings(0), tokens_BT, dx);
  return {head.loss_sum, head.num_tokens};
}

std::vector<std::pair<std::string, at::Tensor>> LoadedModel::gradients() const {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (int64_t unit = 0; unit < model_->num_units(); ++unit) {
    const auto specs = model_->unit_parameters(unit);
    for (size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].is_tied()) {
        continue;
      }
      all.emplace_back(specs[i].name, units_[static_cast<size_t>(unit)][i].grad);
    }
  }
  return all;
}

}  // namespace ciuic::core
