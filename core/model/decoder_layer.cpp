// SPDX-License-Identifier: MIT
#include "core/model/decoder_layer.h"

#include <utility>

#include <ATen/ops/empty_like.h>

#include "core/model/kernels/rms_norm.h"

namespace ciuic::core {
namespace {

// Positions of the parameters within the layer.
constexpr int64_t kInputNorm = 0;
constexpr int64_t kAttention = 1;
constexpr int64_t kMiddleNorm = kAttention + LatentAttention::kNumParameters;
constexpr int64_t kFeedForward = kMiddleNorm + 1;

// d loss / d x of y = f(norm(x)) + x, where `dy` is the residual's part and `dnormed` comes from f.
at::Tensor norm_backward(const Bound& weight, const at::Tensor& dnormed_ND, const at::Tensor& x_ND,
                         const at::Tensor& rstd_N, const at::Tensor& dy_ND) {
  at::Tensor dx_ND = at::empty_like(x_ND);
  accumulate(weight,
             kernels::rms_norm_backward_out(dx_ND, dnormed_ND, x_ND, rstd_N, weight.value, dy_ND));
  return dx_ND;
}

}  // namespace

DecoderLayer::DecoderLayer(const ModelConfig& config, int64_t layer)
    : epsilon_(config.rms_norm_eps), attention_(config) {
  if (config.is_moe_layer(layer)) {
    mixture_.emplace(config);
  }
}

at::Tensor DecoderLayer::forward(Bindings weights, const at::Tensor& x_BTD, const Rotary& rotary,
                                 const at::Tensor& bias_E, const at::Tensor& loads_E,
                                 LayerTape* tape) const {
  const at::Tensor x_ND = x_BTD.flatten(0, 1);
  const Bindings feed_forward = weights.subspan(kFeedForward);

  const auto [x_normed, x_rstd] = kernels::rms_norm(x_ND, weights[kInputNorm].value, epsilon_);
  const at::Tensor middle_ND =
      attention_.forward(weights.subspan(kAttention), x_normed, x_ND, x_BTD.size(0), rotary,
                         tape != nullptr ? &tape->attention : nullptr);
  const auto [middle_normed, middle_rstd] =
      kernels::rms_norm(middle_ND, weights[kMiddleNorm].value, epsilon_);
  const at::Tensor y_ND =
      mixture_ ? mixture_->forward(feed_forward, middle_normed, middle_ND, bias_E, loads_E,
                                   tape != nullptr ? &tape->mixture : nullptr)
               : swiglu_mlp_forward(feed_forward, middle_normed, middle_ND,
                                    tape != nullptr ? &tape->dense : nullptr);
  if (tape != nullptr) {
    tape->x_ND = x_ND;
    tape->x_rstd_N = x_rstd;
    tape->middle_ND = middle_ND;
    tape->middle_rstd_N = middle_rstd;
  }
  return y_ND.view_as(x_BTD);
}

at::Tensor DecoderLayer::backward(Bindings weights, const at::Tensor& dy_BTD, const Rotary& rotary,
                                  LayerTape& tape) const {
  const at::Tensor dy_ND = dy_BTD.flatten(0, 1);
  const Bindings feed_forward = weights.subspan(kFeedForward);

  const at::Tensor dmiddle_normed = mixture_ ? mixture_->backward(feed_forward, dy_ND, tape.mixture)
                                             : swiglu_mlp_backward(feed_forward, dy_ND, tape.dense);
  const at::Tensor dmiddle_ND = norm_backward(weights[kMiddleNorm], dmiddle_normed, tape.middle_ND,
                                              tape.middle_rstd_N, dy_ND);
  const at::Tensor dx_normed = attention_.backward(weights.subspan(kAttention), dmiddle_ND,
                                                   dy_BTD.size(0), rotary, tape.attention);
  const at::Tensor dx_ND =
      norm_backward(weights[kInputNorm], dx_normed, tape.x_ND, tape.x_rstd_N, dmiddle_ND);
  tape.clear();
  return dx_ND.view_as(dy_BTD);
}

}  // namespace ciuic::core
