// SPDX-License-Identifier: MIT
#pragma once

// Angles of the rotary position embedding: cos and sin of position * theta^(-2i/d).
//
// Computed in f32 as transformers does (so that both stand on the same rounded angles), kept for
// the positions that have been asked for. The rotation itself is kernels/mla_heads.h; pairs are
// adjacent elements, (x0, x1), (x2, x3), ... Source: RoFormer, arXiv:2104.09864, equation 34; the
// interleaved layout is that of DeepSeek's files. Left out: YaRN and other scalings (refused by
// problems()).

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace ciuic::core {

class Rotary final {
 public:
  /// `dtype`: f32, or f64 for f64 models.
  Rotary(int64_t rope_dim, double theta, at::ScalarType dtype, at::Device device);

  /// Makes positions [0, num_positions) available. Grows by doubling, so a run settles after its
  /// first step.
  void reserve(int64_t num_positions);

  /// [positions, rope_dim / 2], contiguous.
  [[nodiscard]] const at::Tensor& cosine() const { return cosine_; }
  [[nodiscard]] const at::Tensor& sine() const { return sine_; }

 private:
  int64_t rope_dim_;
  double theta_;
  at::ScalarType dtype_;
  at::Device device_;
  at::Tensor cosine_;
  at::Tensor sine_;
};

}  // namespace ciuic::core
