// SPDX-License-Identifier: MIT
#include "core/model/cached_attention.h"

#include <algorithm>
#include <limits>

#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/triu.h>

#include "core/model/attention.h"
#include "core/model/kernels/dtypes.h"
#include "core/model/product.h"

namespace ciuic::core {
namespace {

// Scores that are held at once, in elements.
constexpr int64_t kMostScores = int64_t{1} << 22;

// Calls body(first query, queries, keys that the last of them sees) over blocks of the new tokens.
template <typename Body>
void for_query_blocks(int64_t added, int64_t total, int64_t heads, const Body& body) {
  const int64_t block = std::max<int64_t>(1, kMostScores / (heads * total));
  for (int64_t first = 0; first < added; first += block) {
    const int64_t count = std::min(block, added - first);
    body(first, count, total - added + first + count);
  }
}

// softmax(scale scores) in place of scores [H, n, t], whose last n keys are the queries' own tokens.
at::Tensor weights_of_scores(const at::Tensor& scores_Hnt, double scale) {
  const int64_t queries = scores_Hnt.size(1);
  scores_Hnt.mul_(scale);
  if (queries > 1) {
    const at::Tensor future =
        at::triu(at::ones({queries, queries}, scores_Hnt.options().dtype(at::kBool)), 1);
    scores_Hnt.narrow(2, scores_Hnt.size(2) - queries, queries)
        .masked_fill_(future, -std::numeric_limits<double>::infinity());
  }
  return scores_Hnt.softmax(2);
}

// [N, H, d] -> [H, n, d] of a block, in the dtype that scores are computed in.
at::Tensor block_of(const at::Tensor& x_NHd, int64_t first, int64_t count, at::ScalarType dtype) {
  return x_NHd.narrow(0, first, count).transpose(0, 1).to(dtype);
}

}  // namespace

CachedPath CachedAttention::best_path(int64_t length, int64_t added) const {
  if (length == 0) {
    return CachedPath::Whole;
  }
  // Multiplications per head.
  const LatentProjections& p = projections_;
  const int64_t total = length + added;
  const int64_t pairs = added * total;
  const int64_t latent = p.kv_latent_dim * (p.nope_dim + p.v_dim);
  const int64_t expanded = total * latent + pairs * (p.nope_dim + p.rope_dim + p.v_dim);
  const int64_t absorbed = added * latent + pairs * (2 * p.kv_latent_dim + p.rope_dim);
  return expanded < absorbed ? CachedPath::Expanded : CachedPath::Absorbed;
}

at::Tensor CachedAttention::forward(Bindings weights, const at::Tensor& x_ND,
                                    const at::Tensor& residual_ND, const Rotary& rotary,
                                    const at::Tensor& cached_TC) const {
  const LatentProjections& p = projections_;
  const Weights w = p.weights_of(weights);
  const int64_t added = x_ND.size(0);
  const int64_t length = cached_TC.size(0) - added;
  const kernels::Angles angles{rotary.cosine().narrow(0, length, added),
                               rotary.sine().narrow(0, length, added),
                               added,
                               {},
                               rotary.is_interleaved()};
  Latents latents;
  p.project(w, x_ND, latents);
  const at::Tensor q_NHd = p.queries(w, angles, latents);
  p.norm_latent(w, latents);

  const at::Tensor rows_NC = cached_TC.narrow(0, length, added);
  rows_NC.narrow(1, 0, p.kv_latent_dim).copy_(latents.kv_normed_NC);
  rows_NC.narrow(1, p.kv_latent_dim, p.rope_dim)
      .copy_(latents.kv_rope_NC.narrow(1, p.kv_latent_dim, p.rope_dim));
  kernels::rotate_queries_(rows_NC.unsqueeze(1), angles);  // the rotary key, as one head

  switch (best_path(length, added)) {
    case CachedPath::Whole:
      return p.output(w, residual_ND, whole(w, q_NHd, latents, angles));
    case CachedPath::Expanded:
      return p.output(w, residual_ND, expanded(w, q_NHd, cached_TC));
    case CachedPath::Absorbed:
      break;
  }
  return p.output(w, residual_ND, absorbed(w, q_NHd, cached_TC));
}

at::Tensor CachedAttention::whole(const Weights& w, const at::Tensor& q_NHd, const Latents& latents,
                                  const kernels::Angles& angles) const {
  const LatentProjections& p = projections_;
  const at::Tensor kv = p.keys_values(w, latents.kv_normed_NC);
  const at::Tensor k = kernels::assemble_keys(kv, latents.kv_rope_NC, p.nope_dim, angles);
  const at::Tensor q = q_NHd.unsqueeze(0);
  const at::Tensor v = kv.narrow(2, p.nope_dim, p.v_dim).unsqueeze(0);
  const Rows rows = whole_rows(1, q_NHd.size(0));
  return attention_forward(best_attention_path(q), q, k.unsqueeze(0), v, {rows, p.softmax_scale},
                           nullptr)
      .view({q_NHd.size(0), -1});
}

at::Tensor CachedAttention::expanded(const Weights& w, const at::Tensor& q_NHd,
                                     const at::Tensor& cached_TC) const {
  const LatentProjections& p = projections_;
  const at::ScalarType dtype = kernels::accumulate_dtype(q_NHd.scalar_type());
  const int64_t added = q_NHd.size(0);
  const at::Tensor kv_HTd =
      p.keys_values(w, cached_TC.narrow(1, 0, p.kv_latent_dim)).transpose(0, 1).to(dtype);
  const at::Tensor rope_TR = cached_TC.narrow(1, p.kv_latent_dim, p.rope_dim).to(dtype);
  const at::Tensor out_NHV = at::empty({added, p.num_heads, p.v_dim}, q_NHd.options());
  for_query_blocks(
      added, cached_TC.size(0), p.num_heads, [&](int64_t first, int64_t count, int64_t keys) {
        const at::Tensor q = block_of(q_NHd, first, count, dtype);
        const at::Tensor seen = kv_HTd.narrow(1, 0, keys);
        const at::Tensor scores =
            at::bmm(q.narrow(2, 0, p.nope_dim), seen.narrow(2, 0, p.nope_dim).transpose(1, 2));
        product_out(scores.view({p.num_heads * count, keys}),
                    q.narrow(2, p.nope_dim, p.rope_dim).reshape({-1, p.rope_dim}),
                    rope_TR.narrow(0, 0, keys).t(), /*adds=*/true);
        const at::Tensor weights = weights_of_scores(scores, p.softmax_scale);
        out_NHV.narrow(0, first, count)
            .copy_(at::bmm(weights, seen.narrow(2, p.nope_dim, p.v_dim)).transpose(0, 1));
      });
  return out_NHV.view({added, -1});
}

at::Tensor CachedAttention::absorbed(const Weights& w, const at::Tensor& q_NHd,
                                     const at::Tensor& cached_TC) const {
  const LatentProjections& p = projections_;
  const at::ScalarType dtype = kernels::accumulate_dtype(q_NHd.scalar_type());
  const int64_t added = q_NHd.size(0);
  const at::Tensor up_HdC =
      w.latent_up.matrix->value.view({p.num_heads, p.nope_dim + p.v_dim, p.kv_latent_dim});
  const at::Tensor keys_up_HPC = up_HdC.narrow(1, 0, p.nope_dim).to(dtype);
  const at::Tensor values_up_HCV = up_HdC.narrow(1, p.nope_dim, p.v_dim).to(dtype).transpose(1, 2);
  const at::Tensor rows_TC = cached_TC.to(dtype);
  const at::Tensor out_NHV = at::empty({added, p.num_heads, p.v_dim}, q_NHd.options());
  for_query_blocks(
      added, cached_TC.size(0), p.num_heads, [&](int64_t first, int64_t count, int64_t keys) {
        const at::Tensor q = block_of(q_NHd, first, count, dtype);
        const at::Tensor q_latent = at::cat({at::bmm(q.narrow(2, 0, p.nope_dim), keys_up_HPC),
                                             q.narrow(2, p.nope_dim, p.rope_dim)},
                                            2)
                                        .flatten(0, 1);
        const at::Tensor seen = rows_TC.narrow(0, 0, keys);
        const at::Tensor scores = product(q_latent, seen.t()).view({p.num_heads, count, keys});
        const at::Tensor weights = weights_of_scores(scores, p.softmax_scale).flatten(0, 1);
        const at::Tensor latent = product(weights, seen.narrow(1, 0, p.kv_latent_dim))
                                      .view({p.num_heads, count, p.kv_latent_dim});
        out_NHV.narrow(0, first, count).copy_(at::bmm(latent, values_up_HCV).transpose(0, 1));
      });
  return out_NHV.view({added, -1});
}

}  // namespace ciuic::core
