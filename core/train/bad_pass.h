// SPDX-License-Identifier: MIT
//
// Which micro-batch's numbers went bad, agreed on by all ranks in the vote of a step.
#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/TensorBody.h>

namespace ciuic::core {

/// Of the lowest rank that has one, its first micro-batch whose loss, or whose gradient as it reaches
/// the embedding, is not finite.
struct BadPass {
  int rank = 0;
  uint32_t micro_batch = 0;

  /// As a number whose maximum over the ranks is the vote's outcome; 0 stands for no bad pass.
  [[nodiscard]] static double vote(const std::optional<BadPass>& mine, int world);
  [[nodiscard]] static std::optional<BadPass> elected(double maximum, int world);
};

/// Whether no element is infinite or NaN. Without a copy for fp32, bf16 and fp16 in host memory.
bool is_finite(const at::Tensor& tensor);

}  // namespace ciuic::core
