// SPDX-License-Identifier: MIT
// MLA heads: choice of the kernel, and the compositions of LibTorch operations that they must agree
// with.
#include "core/model/kernels/mla_heads.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>

#include "core/model/kernels/dtypes.h"

namespace ciuic::core::kernels {
namespace reference {
namespace {

// [N, 1, R / 2]: the rows' values of a table of angles.
at::Tensor by_row(const at::Tensor& table, const Angles& angles, int64_t rows) {
  if (angles.positions_N.defined()) {
    return table.index_select(0, angles.positions_N).unsqueeze(1);
  }
  return table.narrow(0, 0, angles.num_positions)
      .repeat({rows / angles.num_positions, 1})
      .unsqueeze(1);
}

// x: [N, heads, R], rotated (or turned back: direction -1) out of place, in x's dtype.
at::Tensor rotated(const at::Tensor& x, const Angles& angles, double direction) {
  const int64_t half = x.size(2) / 2;
  const at::IntArrayRef split = x.sizes();
  const at::Tensor wide = x.to(accumulate_dtype(x.scalar_type()));
  // The two members of a pair are the last dimension, or the last but one.
  const at::Tensor pairs = angles.is_interleaved
                               ? wide.reshape({split[0], split[1], half, 2})
                               : wide.reshape({split[0], split[1], 2, half}).transpose(2, 3);
  const at::Tensor re = pairs.select(3, 0);
  const at::Tensor im = pairs.select(3, 1);
  const at::Tensor c = by_row(angles.cosine, angles, x.size(0));
  const at::Tensor s = by_row(angles.sine, angles, x.size(0)).mul(direction);
  const at::Tensor out = at::stack({re.mul(c).sub(im.mul(s)), re.mul(s).add(im.mul(c))},
                                   angles.is_interleaved ? 3 : 2);
  return out.reshape(x.sizes()).to(x.scalar_type());
}

at::Tensor tail(const at::Tensor& x, int64_t size) { return x.narrow(-1, x.size(-1) - size, size); }

}  // namespace

void rotate_queries_(const at::Tensor& q_NHd, const Angles& angles) {
  const at::Tensor rope = tail(q_NHd, 2 * angles.cosine.size(1));
  rope.copy_(rotated(rope, angles, 1));
}

void rotate_queries_backward_(const at::Tensor& dq_NHd, const Angles& angles) {
  const at::Tensor rope = tail(dq_NHd, 2 * angles.cosine.size(1));
  rope.copy_(rotated(rope, angles, -1));
}

at::Tensor assemble_keys(const at::Tensor& kv_NHd, const at::Tensor& latent_rope_NC,
                         int64_t nope_dim, const Angles& angles) {
  const int64_t rope_dim = 2 * angles.cosine.size(1);
  at::Tensor k = at::empty({kv_NHd.size(0), kv_NHd.size(1), nope_dim + rope_dim}, kv_NHd.options());
  k.narrow(2, 0, nope_dim).copy_(kv_NHd.narrow(2, 0, nope_dim));
  tail(k, rope_dim).copy_(rotated(tail(latent_rope_NC, rope_dim).unsqueeze(1), angles, 1));
  return k;
}

void assemble_keys_backward_(const at::Tensor& dkv_NHd, const at::Tensor& dlatent_rope_NC,
                             const at::Tensor& dk_NHd, const Angles& angles) {
  const int64_t rope_dim = 2 * angles.cosine.size(1);
  const int64_t nope_dim = dk_NHd.size(2) - rope_dim;
  dkv_NHd.narrow(2, 0, nope_dim).copy_(dk_NHd.narrow(2, 0, nope_dim));
  const at::Tensor shared =
      tail(dk_NHd, rope_dim).to(accumulate_dtype(dk_NHd.scalar_type())).sum({1}, /*keepdim=*/true);
  tail(dlatent_rope_NC, rope_dim).copy_(rotated(shared, angles, -1).squeeze(1));
}

}  // namespace reference

void rotate_queries_(const at::Tensor& q_NHd, const Angles& angles) {
  q_NHd.is_cpu() ? cpu::rotate_queries_(q_NHd, angles) : reference::rotate_queries_(q_NHd, angles);
}

void rotate_queries_backward_(const at::Tensor& dq_NHd, const Angles& angles) {
  dq_NHd.is_cpu() ? cpu::rotate_queries_backward_(dq_NHd, angles)
                  : reference::rotate_queries_backward_(dq_NHd, angles);
}

at::Tensor assemble_keys(const at::Tensor& kv_NHd, const at::Tensor& latent_rope_NC,
                         int64_t nope_dim, const Angles& angles) {
  return kv_NHd.is_cpu() ? cpu::assemble_keys(kv_NHd, latent_rope_NC, nope_dim, angles)
                         : reference::assemble_keys(kv_NHd, latent_rope_NC, nope_dim, angles);
}

void assemble_keys_backward_(const at::Tensor& dkv_NHd, const at::Tensor& dlatent_rope_NC,
                             const at::Tensor& dk_NHd, const Angles& angles) {
  dkv_NHd.is_cpu() ? cpu::assemble_keys_backward_(dkv_NHd, dlatent_rope_NC, dk_NHd, angles)
                   : reference::assemble_keys_backward_(dkv_NHd, dlatent_rope_NC, dk_NHd, angles);
}

}  // namespace ciuic::core::kernels
