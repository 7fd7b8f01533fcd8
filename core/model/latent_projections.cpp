// SPDX-License-Identifier: MIT
#include "core/model/latent_projections.h"

#include <utility>

#include <ATen/ops/sum.h>

#include "core/model/kernels/dtypes.h"
#include "core/model/kernels/rms_norm.h"
#include "core/model/linear.h"

namespace ciuic::core {
namespace {

// transformers leaves the latent norms at the default of their class, whatever rms_norm_eps says.
constexpr double kLatentEpsilon = 1e-6;

}  // namespace

at::Tensor Projection::forward(const at::Tensor& x) const {
  const at::Tensor y = linear(x, *matrix);
  return bias != nullptr ? y.add_(bias->value) : y;
}

void Projection::accumulate_gradients(const at::Tensor& dy, const at::Tensor& x) const {
  accumulate_product(*matrix, dy, x);
  if (bias != nullptr) {
    accumulate(*bias, dy.sum({0}, /*keepdim=*/false, kernels::accumulate_dtype(dy.scalar_type())));
  }
}

at::Tensor Projection::backward(const at::Tensor& dy) const { return linear_backward(dy, *matrix); }

LatentProjections::LatentProjections(const ModelConfig& config)
    : num_heads(config.num_attention_heads),
      nope_dim(config.qk_nope_head_dim),
      rope_dim(config.qk_rope_head_dim),
      v_dim(config.v_head_dim),
      kv_latent_dim(config.kv_lora_rank),
      has_query_latent(config.q_lora_rank.has_value()),
      has_biases(config.attention_bias),
      softmax_scale(config.softmax_scale()) {}

LatentProjections::Weights LatentProjections::weights_of(Bindings bindings) const {
  const Bound* next = bindings.data();
  const auto with_bias = [&] {
    Projection p{next++, nullptr};
    p.bias = has_biases ? next++ : nullptr;
    return p;
  };
  Weights w;
  if (has_query_latent) {
    w.query_down = with_bias();
    w.query_norm = next++;
  }
  w.query_up.matrix = next++;
  w.latent_down = with_bias();
  w.latent_norm = next++;
  w.latent_up.matrix = next++;
  w.output = with_bias();
  return w;
}

void LatentProjections::project(const Weights& w, const at::Tensor& x_ND, Latents& latents) const {
  latents.x_ND = x_ND;
  if (has_query_latent) {
    latents.query_NQ = w.query_down.forward(x_ND);
  }
  latents.kv_rope_NC = w.latent_down.forward(x_ND);
}

at::Tensor LatentProjections::queries(const Weights& w, const kernels::Angles& angles,
                                      Latents& latents) const {
  if (has_query_latent) {
    kernels::RmsNorm norm =
        kernels::rms_norm(latents.query_NQ, w.query_norm->value, kLatentEpsilon);
    latents.query_normed_NQ = std::move(norm.y_ND);
    latents.query_rstd_N = std::move(norm.rstd_N);
  }
  at::Tensor q = w.query_up.forward(has_query_latent ? latents.query_normed_NQ : latents.x_ND)
                     .view({latents.x_ND.size(0), num_heads, nope_dim + rope_dim});
  kernels::rotate_queries_(q, angles);
  return q;
}

void LatentProjections::norm_latent(const Weights& w, Latents& latents) const {
  kernels::RmsNorm norm = kernels::rms_norm(latents.kv_rope_NC.narrow(1, 0, kv_latent_dim),
                                            w.latent_norm->value, kLatentEpsilon);
  latents.kv_normed_NC = std::move(norm.y_ND);
  latents.kv_rstd_N = std::move(norm.rstd_N);
}

at::Tensor LatentProjections::keys_values(const Weights& w, const at::Tensor& kv_normed_NC) const {
  return w.latent_up.forward(kv_normed_NC)
      .view({kv_normed_NC.size(0), num_heads, nope_dim + v_dim});
}

at::Tensor LatentProjections::output(const Weights& w, const at::Tensor& residual_ND,
                                     const at::Tensor& out_NV) const {
  at::Tensor y_ND = add_linear(residual_ND, out_NV, *w.output.matrix);
  return w.output.bias != nullptr ? y_ND.add_(w.output.bias->value) : y_ND;
}

}  // namespace ciuic::core
