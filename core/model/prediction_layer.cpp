// SPDX-License-Identifier: MIT
#include "core/model/prediction_layer.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>

#include "core/bench/step_clock.h"
#include "core/model/head.h"
#include "core/model/kernels/rms_norm.h"
#include "core/model/linear.h"
#include "core/model/norm_backward.h"

namespace ciuic::core {
namespace {

// Positions of the parameters within the unit; the last is shared_head.norm.
enum Weight : size_t { kEmbeddingNorm, kHiddenNorm, kProjection, kLayer };

at::Tensor joined_inputs(Bindings weights, const PredictionTape& tape, double epsilon) {
  return at::cat({kernels::rms_norm(tape.embedded_ND, weights[kEmbeddingNorm].value, epsilon).y_ND,
                  kernels::rms_norm(tape.hidden_ND, weights[kHiddenNorm].value, epsilon).y_ND},
                 1);
}

// As norm_backward, without the forward's rstd: the tape of a prediction has none.
at::Tensor norm_backward_again(const Bound& weight, const at::Tensor& dy_ND, const at::Tensor& x_ND,
                               double epsilon, const at::Tensor& residual_ND) {
  return norm_backward(weight, dy_ND, x_ND, kernels::rms_norm(x_ND, weight.value, epsilon).rstd_N,
                       residual_ND);
}

at::Tensor flat_or_undefined(const at::Tensor& x_BTD) {
  return x_BTD.defined() ? x_BTD.flatten(0, 1) : at::Tensor();
}

}  // namespace

PredictionLayer::PredictionLayer(const ModelConfig& config, int64_t layer, const ExpertShare& share)
    : epsilon_(config.rms_norm_eps), layer_(config, layer, share) {}

Bindings PredictionLayer::layer_weights(Bindings weights) { return weights.subspan(kLayer); }

PredictionLayer::Output PredictionLayer::forward(Bindings weights, const at::Tensor& embedded_BTD,
                                                 const at::Tensor& hidden_BTD,
                                                 const LayerContext& context,
                                                 const RouterPass& router, Recompute recompute,
                                                 PredictionTape* tape) const {
  const PartSpan part(Part::Prediction);
  PredictionTape made;
  made.embedded_ND = embedded_BTD.flatten(0, 1);
  made.hidden_ND = hidden_BTD.flatten(0, 1);
  const at::Tensor joined = joined_inputs(weights, made, epsilon_);
  const at::Tensor x_BTD = linear(joined, weights[kProjection]).view_as(hidden_BTD);
  Output out;
  out.hidden_BTD = layer_.forward(weights.subspan(kLayer), x_BTD, context, router, recompute,
                                  tape != nullptr ? &made.layer : nullptr);
  made.out_ND = out.hidden_BTD.flatten(0, 1);
  out.normed_BTD =
      kernels::rms_norm(made.out_ND, weights.back().value, epsilon_).y_ND.view_as(hidden_BTD);
  if (tape != nullptr) {
    *tape = std::move(made);
  }
  return out;
}

PredictionLayer::Gradient PredictionLayer::backward(Bindings weights, const at::Tensor& dnormed_BTD,
                                                    const at::Tensor& dhidden_BTD,
                                                    const LayerContext& context,
                                                    const RouterPass& router,
                                                    PredictionTape& tape) const {
  const PartSpan part(Part::Prediction);
  PredictionTape saved = std::exchange(tape, {});
  const at::Tensor dout_ND =
      norm_backward_again(weights.back(), dnormed_BTD.flatten(0, 1), saved.out_ND, epsilon_,
                          flat_or_undefined(dhidden_BTD));
  const at::Tensor dx_BTD = layer_.backward(weights.subspan(kLayer), dout_ND.view_as(dnormed_BTD),
                                            context, router, saved.layer);
  const at::Tensor dx_ND = dx_BTD.flatten(0, 1);
  accumulate_product(weights[kProjection], dx_ND, joined_inputs(weights, saved, epsilon_));
  const at::Tensor djoined = linear_backward(dx_ND, weights[kProjection]);
  const int64_t width = dx_ND.size(1);
  const at::Tensor dembedded =
      norm_backward_again(weights[kEmbeddingNorm], djoined.narrow(1, 0, width).contiguous(),
                          saved.embedded_ND, epsilon_, {});
  const at::Tensor dhidden =
      norm_backward_again(weights[kHiddenNorm], djoined.narrow(1, width, width).contiguous(),
                          saved.hidden_ND, epsilon_, {});
  return {dembedded.view_as(dnormed_BTD), dhidden.view_as(dnormed_BTD)};
}

at::Tensor shifted(const at::Tensor& tokens_BT, int64_t depth, int64_t fill) {
  at::Tensor out = at::full_like(tokens_BT, fill);
  const int64_t left = tokens_BT.size(1) - depth;
  if (left > 0) {
    out.narrow(1, 0, left).copy_(tokens_BT.narrow(1, depth, left));
  }
  return out;
}

at::Tensor prediction_targets(const at::Tensor& targets_BT, const Rows& rows, int64_t depth) {
  at::Tensor out = shifted(targets_BT, depth, kIgnoredTarget);
  for (const Rows::Span& span : rows.spans) {
    const int64_t tail = std::min(depth, span.length);
    out.select(0, span.row).narrow(0, span.begin + span.length - tail, tail).fill_(kIgnoredTarget);
  }
  return out;
}

}  // namespace ciuic::core
