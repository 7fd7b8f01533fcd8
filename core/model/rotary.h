// SPDX-License-Identifier: MIT
#pragma once

// Angles of the rotary position embedding: cos and sin of position * frequency, times YaRN's factor.
//
// Computed in f32 as transformers does (so that both stand on the same rounded angles), kept for
// the positions that have been asked for. The rotation itself is kernels/mla_heads.h, frequencies
// are rope_parameters.h's. Source: RoFormer, arXiv:2104.09864, equation 34.

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/model_config.h"

namespace ciuic::core {

class Rotary final {
 public:
  /// `dtype`: f32, or f64 for f64 models.
  Rotary(const ModelConfig& config, at::ScalarType dtype, at::Device device);

  /// Makes positions [0, num_positions) available. Grows by doubling, so a run settles after its
  /// first step.
  void reserve(int64_t num_positions);

  /// Pairs are adjacent elements, (x0, x1), (x2, x3), ..., as in DeepSeek's files; otherwise half a
  /// head apart.
  [[nodiscard]] bool is_interleaved() const { return is_interleaved_; }
  /// [positions, rope_dim / 2], contiguous.
  [[nodiscard]] const at::Tensor& cosine() const { return cosine_; }
  [[nodiscard]] const at::Tensor& sine() const { return sine_; }

 private:
  std::vector<float> frequencies_;
  float factor_;
  bool is_interleaved_;
  at::ScalarType dtype_;
  at::Device device_;
  at::Tensor cosine_;
  at::Tensor sine_;
};

}  // namespace ciuic::core
