// SPDX-License-Identifier: MIT
#include "core/train/passes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include <c10/core/InferenceMode.h>

#include "core/bench/step_clock.h"
#include "core/train/bad_pass.h"
#include "core/train/stopwatch.h"
#include "core/train/walk.h"

namespace ciuic::core {
namespace {

using Clock = std::chrono::steady_clock;

Rows rows_of(const MicroBatch& batch) {
  Rows rows = batch.document_starts.defined()
                  ? document_rows(batch.document_starts)
                  : whole_rows(batch.tokens.size(0), batch.tokens.size(1));
  rows.samples = batch.samples;
  return rows;
}

/// A unit's parameters for a second backward within one bind, which must add.
std::vector<Bound> adding(Bindings bindings) {
  std::vector<Bound> added(bindings.begin(), bindings.end());
  for (Bound& bound : added) {
    bound.overwrite = false;
  }
  return added;
}

}  // namespace

/// Depth k of multi-token prediction is element k - 1.
struct Passes::Training {
  explicit Training(const Model& model)
      : tapes(static_cast<size_t>(model.num_units())),
        predictions(static_cast<size_t>(model.num_depths())) {}

  struct Prediction {
    at::Tensor tokens_BT;     // `depth` places further on
    at::Tensor embedded_BTD;  // theirs; in backward its gradient
    at::Tensor normed_BTD;    // what the head gets; in backward its gradient
    PredictionTape tape;
  };

  std::vector<LayerTape> tapes;  // by unit
  std::vector<Prediction> predictions;
  at::Tensor hidden_BTD;  // of the last layer; in backward the gradient that walks down
};

at::Tensor Passes::forward(const MicroBatch& batch, const Pass& pass, uint32_t index,
                           Training* training) {
  const PhaseSpan phase(Phase::Forward);
  const Span span(events_, CIUIC_CATEGORY_FORWARD, "forward", index);
  at::Tensor hidden;
  {
    const BoundUnit unit = binder_.bind(0, CIUIC_PASS_FORWARD, index);
    hidden = model_.embed(unit.bindings(), batch.tokens);
    for (int64_t depth = 1; training != nullptr && depth <= model_.num_depths(); ++depth) {
      Training::Prediction& prediction = training->predictions[static_cast<size_t>(depth - 1)];
      prediction.tokens_BT = shifted(batch.tokens, depth, /*fill=*/0);
      prediction.embedded_BTD = model_.embed(unit.bindings(), prediction.tokens_BT);
    }
  }
  for (int64_t u = 1; u <= model_.last_layer_unit(); ++u) {
    const BoundUnit unit = binder_.bind(u, CIUIC_PASS_FORWARD, index);
    LayerTape* tape = training != nullptr ? &training->tapes[static_cast<size_t>(u)] : nullptr;
    hidden = model_.forward(u, unit.bindings(), hidden, pass, tape);
  }
  if (training != nullptr) {
    training->hidden_BTD = hidden;
    predict(pass, index, *training);
  }
  return hidden;
}

void Passes::predict(const Pass& pass, uint32_t index, Training& training) {
  at::Tensor hidden = training.hidden_BTD;
  for (int64_t depth = 1; depth <= model_.num_depths(); ++depth) {
    Training::Prediction& prediction = training.predictions[static_cast<size_t>(depth - 1)];
    const BoundUnit unit = binder_.bind(model_.depth_unit(depth), CIUIC_PASS_FORWARD, index);
    PredictionLayer::Output out = model_.predict(depth, unit.bindings(), prediction.embedded_BTD,
                                                 hidden, pass, &prediction.tape);
    prediction.normed_BTD = std::move(out.normed_BTD);
    hidden = std::move(out.hidden_BTD);
  }
}

/// The head's forward and backward are one bind: its logits live for a chunk of tokens only.
PassResult Passes::head_backward(const MicroBatch& batch, const Pass& pass, uint32_t index,
                                 uint32_t flags, Training& training) {
  const BoundUnit unit = binder_.bind(model_.head_unit(), CIUIC_PASS_BACKWARD, index, flags);
  HeadGradient head = model_.head_loss_and_backward(unit.bindings(), training.hidden_BTD,
                                                    batch.targets, pass.objective.seed);
  PassResult result;
  result.loss_sum = head.loss_sum;
  result.tokens = head.num_tokens;
  training.hidden_BTD = std::move(head.dhidden);
  const double seed = pass.objective.seed * pass.objective.prediction /
                      static_cast<double>(std::max<int64_t>(1, model_.num_depths()));
  for (int64_t depth = 1; depth <= model_.num_depths(); ++depth) {
    at::Tensor& normed = training.predictions[static_cast<size_t>(depth - 1)].normed_BTD;
    HeadGradient predicted = model_.predicted_loss_and_backward(
        unit.bindings(), normed, prediction_targets(batch.targets, pass.rows, depth), seed);
    result.prediction_loss_sum += predicted.loss_sum;
    result.predicted_tokens += predicted.num_tokens;
    normed = std::move(predicted.dhidden);
  }
  unit.grad_ready();
  return result;
}

void Passes::predict_backward(const Pass& pass, uint32_t index, uint32_t flags,
                              Training& training) {
  at::Tensor dhidden;
  for (int64_t depth = model_.num_depths(); depth > 0; --depth) {
    Training::Prediction& prediction = training.predictions[static_cast<size_t>(depth - 1)];
    const BoundUnit unit =
        binder_.bind(model_.depth_unit(depth), CIUIC_PASS_BACKWARD, index, flags);
    PredictionLayer::Gradient gradient = model_.predict_backward(
        depth, unit.bindings(), prediction.normed_BTD, dhidden, pass, prediction.tape);
    unit.grad_ready();
    prediction.embedded_BTD = std::move(gradient.dembedded_BTD);
    dhidden = std::move(gradient.dhidden_BTD);
  }
  if (dhidden.defined()) {
    training.hidden_BTD.add_(dhidden);
  }
}

PassResult Passes::backward(const MicroBatch& batch, const Pass& pass, uint32_t index,
                            uint32_t flags, Training& training) {
  const PhaseSpan phase(Phase::Backward);
  const Span span(events_, CIUIC_CATEGORY_BACKWARD, "backward", index);
  PassResult result = head_backward(batch, pass, index, flags, training);
  predict_backward(pass, index, flags, training);
  at::Tensor dhidden = std::move(training.hidden_BTD);
  for (int64_t u = model_.last_layer_unit(); u > 0; --u) {
    const BoundUnit unit = binder_.bind(u, CIUIC_PASS_BACKWARD, index, flags);
    dhidden =
        model_.backward(u, unit.bindings(), dhidden, pass, training.tapes[static_cast<size_t>(u)]);
    unit.grad_ready();
  }
  result.is_finite = std::isfinite(result.loss_sum) && is_finite(dhidden);
  const BoundUnit unit = binder_.bind(0, CIUIC_PASS_BACKWARD, index, flags);
  model_.embed_backward(unit.bindings(), batch.tokens, dhidden);
  for (const Training::Prediction& prediction : training.predictions) {
    model_.embed_backward(adding(unit.bindings()), prediction.tokens_BT, prediction.embedded_BTD);
  }
  unit.grad_ready();
  return result;
}

void Passes::walk_idle(uint32_t index, bool is_last) {
  const uint32_t last = is_last ? uint32_t{CIUIC_USE_LAST_GRAD} : 0u;
  std::vector<LayerTape> tapes(static_cast<size_t>(model_.num_units()));
  for (int64_t u = 0; u < model_.head_unit(); ++u) {
    const BoundUnit unit =
        binder_.bind(u, CIUIC_PASS_FORWARD, index, idle_flag(model_, u, /*is_idle=*/true));
    if (model_.serves(u)) {
      model_.serve(u, unit.bindings(), settings_.recompute, &tapes[static_cast<size_t>(u)]);
    }
  }
  for (int64_t u = model_.head_unit(); u >= 0; --u) {
    const BoundUnit unit =
        binder_.bind(u, CIUIC_PASS_BACKWARD, index, idle_flag(model_, u, /*is_idle=*/true) | last);
    if (model_.serves(u)) {
      model_.serve_backward(u, unit.bindings(), tapes[static_cast<size_t>(u)]);
    }
    unit.grad_ready();
  }
}

void Passes::evaluate_idle(uint32_t index) {
  for (int64_t u = 0; u <= model_.last_layer_unit(); ++u) {
    const BoundUnit unit =
        binder_.bind(u, CIUIC_PASS_FORWARD, index, idle_flag(model_, u, /*is_idle=*/true));
    if (model_.serves(u)) {
      model_.serve(u, unit.bindings(), settings_.recompute, nullptr);
    }
  }
  const BoundUnit head =
      binder_.bind(model_.head_unit(), CIUIC_PASS_FORWARD, index, CIUIC_USE_IDLE);
}

PassResult Passes::train(const MicroBatch& batch, uint32_t index, bool is_last,
                         const Objective& objective, PassSeconds& seconds) {
  const c10::InferenceMode no_autograd;
  if (batch.is_idle()) {
    walk_idle(index, is_last);
    return {};
  }
  const Pass pass{rows_of(batch), Mode::Train, objective, settings_.recompute, settings_.seed};
  Training training(model_);
  auto begin = Clock::now();
  forward(batch, pass, index, &training);
  seconds.forward += seconds_since(begin);
  begin = Clock::now();
  const PassResult result =
      backward(batch, pass, index, is_last ? uint32_t{CIUIC_USE_LAST_GRAD} : 0u, training);
  seconds.backward += seconds_since(begin);
  return result;
}

PassResult Passes::evaluate(const MicroBatch& batch, uint32_t index) {
  const c10::InferenceMode no_autograd;
  if (batch.is_idle()) {
    evaluate_idle(index);
    return {};
  }
  const Pass pass{rows_of(batch), Mode::Evaluate, {}, {}, {}};
  const at::Tensor hidden = forward(batch, pass, index, nullptr);
  const BoundUnit unit = binder_.bind(model_.head_unit(), CIUIC_PASS_FORWARD, index);
  const HeadLoss loss = model_.head_loss(unit.bindings(), hidden, batch.targets);
  PassResult result;
  result.loss_sum = loss.loss_sum;
  result.tokens = loss.num_tokens;
  return result;
}

}  // namespace ciuic::core
