// SPDX-License-Identifier: MIT
#pragma once

// Rotation by position, and putting MLA's keys together from their per-head and their shared part.
//
// Pairs turn by the angle of their position, written as complex numbers z e^(i angle); the gradient
// turns back. Shapes: N = B*T rows, T tokens, H heads, P position-free width,
// R rotary width, C latent. Source: RoFormer, arXiv:2104.09864, equation 34; DeepSeek-V2,
// arXiv:2405.04434, equations 14-19.

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace ciuic::core::kernels {

/// cosine, sine: f32 or f64 [positions, R / 2].
struct Angles {
  at::Tensor cosine, sine;
  int64_t num_positions;       // T, when positions count along the rows
  at::Tensor positions_N;      // int32 [N] otherwise; undefined: row mod T
  bool is_interleaved = true;  // a pair is two adjacent elements, else elements half of R apart
};

/// Turns the last R elements of each head of q [N, H, P + R] in place; backward turns them back.
void rotate_queries_(const at::Tensor& q_NHd, const Angles& angles);
void rotate_queries_backward_(const at::Tensor& dq_NHd, const Angles& angles);

/// kv: [N, H, P + V]; latent_rope: [N, C + R], its last R the shared rotary part. -> keys [N, H, P
/// + R].
at::Tensor assemble_keys(const at::Tensor& kv_NHd, const at::Tensor& latent_rope_NC,
                         int64_t nope_dim, const Angles& angles);
/// From dk [N, H, P + R]: copies the first P of each head into dkv [N, H, P + V], and writes the
/// sum over heads of the rest, turned back, into the last R of dlatent_rope [N, C + R]. What else
/// these two hold stays.
void assemble_keys_backward_(const at::Tensor& dkv_NHd, const at::Tensor& dlatent_rope_NC,
                             const at::Tensor& dk_NHd, const Angles& angles);

namespace reference {
void rotate_queries_(const at::Tensor& q_NHd, const Angles& angles);
void rotate_queries_backward_(const at::Tensor& dq_NHd, const Angles& angles);
at::Tensor assemble_keys(const at::Tensor& kv_NHd, const at::Tensor& latent_rope_NC,
                         int64_t nope_dim, const Angles& angles);
void assemble_keys_backward_(const at::Tensor& dkv_NHd, const at::Tensor& dlatent_rope_NC,
                             const at::Tensor& dk_NHd, const Angles& angles);
}  // namespace reference

namespace cpu {
void rotate_queries_(const at::Tensor& q_NHd, const Angles& angles);
void rotate_queries_backward_(const at::Tensor& dq_NHd, const Angles& angles);
at::Tensor assemble_keys(const at::Tensor& kv_NHd, const at::Tensor& latent_rope_NC,
                         int64_t nope_dim, const Angles& angles);
void assemble_keys_backward_(const at::Tensor& dkv_NHd, const at::Tensor& dlatent_rope_NC,
                             const at::Tensor& dk_NHd, const Angles& angles);
}  // namespace cpu

}  // namespace ciuic::core::kernels
