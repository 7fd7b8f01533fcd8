// SPDX-License-Identifier: MIT
#include "core/model/decoder_layer.h"

#include <utility>

#include "core/model/kernels/rms_norm.h"
#include "core/model/norm_backward.h"

namespace ciuic::core {
namespace {

// Positions of the parameters within the layer.
constexpr size_t kInputNorm = 0;
constexpr size_t kAttention = 1;

}  // namespace

DecoderLayer::DecoderLayer(const ModelConfig& config, int64_t layer, const ExpertShare& share)
    : epsilon_(config.rms_norm_eps), attention_(config), cached_attention_(config) {
  if (config.is_moe_layer(layer)) {
    mixture_.emplace(config, share);
  }
}

at::Tensor DecoderLayer::feed_forward(Bindings weights, const at::Tensor& normed_ND,
                                      const at::Tensor& middle_ND, const RouterPass& router,
                                      LayerTape* tape) const {
  return mixture_ ? mixture_->forward(weights, normed_ND, middle_ND, router,
                                      tape != nullptr ? &tape->mixture : nullptr)
                  : swiglu_mlp_forward(weights, normed_ND, middle_ND,
                                       tape != nullptr ? &tape->dense : nullptr);
}

at::Tensor DecoderLayer::forward(Bindings weights, const at::Tensor& x_BTD,
                                 const LayerContext& context, const RouterPass& router,
                                 Recompute recompute, LayerTape* tape) const {
  const at::Tensor x_ND = x_BTD.flatten(0, 1);
  LayerTape* inner = recompute == Recompute::Full ? nullptr : tape;

  const auto [x_normed, x_rstd] = kernels::rms_norm(x_ND, weights[kInputNorm].value, epsilon_);
  const at::Tensor middle_ND =
      attention_.forward(weights.subspan(kAttention), x_normed, x_ND, context.rows, context.rotary,
                         inner != nullptr ? &inner->attention : nullptr);
  const auto [middle_normed, middle_rstd] =
      kernels::rms_norm(middle_ND, weights[middle_norm()].value, epsilon_);
  const at::Tensor y_ND =
      feed_forward(weights.subspan(middle_norm() + 1), middle_normed, middle_ND, router, inner);
  if (inner != nullptr) {
    inner->x_rstd_N = x_rstd;
    inner->middle_ND = middle_ND;
    inner->middle_rstd_N = middle_rstd;
  }
  if (tape != nullptr) {
    tape->x_ND = x_ND;
    tape->recompute = recompute;
    if (recompute == Recompute::Selective) {
      tape->attention.shrink();
      tape->dense.x_ND.reset();
      tape->mixture.shrink();
    }
  }
  return y_ND.view_as(x_BTD);
}

at::Tensor DecoderLayer::forward_cached(Bindings weights, const at::Tensor& x_ND,
                                        const at::Tensor& cached_TC, const Rotary& rotary,
                                        const RouterPass& router) const {
  const at::Tensor x_normed = kernels::rms_norm(x_ND, weights[kInputNorm].value, epsilon_).y_ND;
  const at::Tensor middle_ND =
      cached_attention_.forward(weights.subspan(kAttention), x_normed, x_ND, rotary, cached_TC);
  const at::Tensor middle_normed =
      kernels::rms_norm(middle_ND, weights[middle_norm()].value, epsilon_).y_ND;
  return feed_forward(weights.subspan(middle_norm() + 1), middle_normed, middle_ND, router,
                      nullptr);
}

// Fills in what `recompute` left out. Loads and terms were counted in the forward.
void DecoderLayer::restore(Bindings weights, const LayerContext& context, const RouterPass& router,
                           LayerTape& tape) const {
  if (tape.recompute == Recompute::Full) {
    RouterTerms counted;
    RouterPass again = router;
    again.loads_E.reset();
    again.terms = &counted;
    const at::Tensor x_BTD = tape.x_ND.unflatten(0, {context.rows.count, context.rows.tokens});
    forward(weights, x_BTD, context, again, Recompute::None, &tape);
  } else if (tape.recompute == Recompute::Selective) {
    const at::Tensor x_normed =
        kernels::rms_norm(tape.x_ND, weights[kInputNorm].value, epsilon_).y_ND;
    attention_.restore(weights.subspan(kAttention), x_normed, context.rows, context.rotary,
                       tape.attention);
    const at::Tensor middle_normed =
        kernels::rms_norm(tape.middle_ND, weights[middle_norm()].value, epsilon_).y_ND;
    if (mixture_) {
      tape.mixture.restore(middle_normed);
    } else {
      tape.dense.x_ND = middle_normed;
    }
  }
}

at::Tensor DecoderLayer::backward(Bindings weights, const at::Tensor& dy_BTD,
                                  const LayerContext& context, const RouterPass& router,
                                  LayerTape& tape) const {
  restore(weights, context, router, tape);
  const at::Tensor dy_ND = dy_BTD.flatten(0, 1);
  const Bindings last = weights.subspan(middle_norm() + 1);

  const at::Tensor dmiddle_normed =
      mixture_ ? mixture_->backward(last, dy_ND, router.objective, tape.mixture)
               : swiglu_mlp_backward(last, dy_ND, tape.dense);
  const at::Tensor dmiddle_ND = norm_backward(weights[middle_norm()], dmiddle_normed,
                                              tape.middle_ND, tape.middle_rstd_N, dy_ND);
  const at::Tensor dx_normed = attention_.backward(weights.subspan(kAttention), dmiddle_ND,
                                                   context.rows, context.rotary, tape.attention);
  const at::Tensor dx_ND =
      norm_backward(weights[kInputNorm], dx_normed, tape.x_ND, tape.x_rstd_N, dmiddle_ND);
  tape.clear();
  return dx_ND.view_as(dy_BTD);
}

void DecoderLayer::serve(Bindings weights, const at::TensorOptions& rows,
                         const ExpertExchange& exchange, Recompute recompute,
                         LayerTape* tape) const {
  const bool keeps = tape != nullptr && recompute != Recompute::Full;
  mixture_->serve(weights.subspan(middle_norm() + 1), rows, exchange,
                  keeps ? &tape->mixture : nullptr);
  if (tape != nullptr) {
    tape->recompute = recompute;
  }
}

void DecoderLayer::serve_backward(Bindings weights, const at::TensorOptions& rows,
                                  const ExpertExchange& exchange, LayerTape& tape) const {
  const Bindings mixture = weights.subspan(middle_norm() + 1);
  if (tape.recompute == Recompute::Full) {
    mixture_->serve(mixture, rows, exchange, &tape.mixture);
  }
  mixture_->serve_backward(mixture, rows, tape.mixture);
  tape.clear();
}

}  // namespace ciuic::core
