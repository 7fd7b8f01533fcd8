// SPDX-License-Identifier: MIT
// Tables of rotary angles.
#include "core/model/rotary.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/empty.h>

namespace ciuic::core {

Rotary::Rotary(const ModelConfig& config, at::ScalarType dtype, at::Device device)
    : frequencies_(inverse_frequencies(config.applied_rope(), config.qk_rope_head_dim,
                                       config.rope_theta, config.max_position_embeddings)),
      factor_(static_cast<float>(rotary_factor(config.applied_rope()))),
      is_interleaved_(config.rope_interleave),
      dtype_(dtype),
      device_(device) {}

void Rotary::reserve(int64_t num_positions) {
  const int64_t held = cosine_.defined() ? cosine_.size(0) : 0;
  if (num_positions <= held) {
    return;
  }
  const int64_t size = std::max(num_positions, 2 * held);
  const auto half = static_cast<int64_t>(frequencies_.size());
  const at::TensorOptions host = at::TensorOptions().dtype(at::kFloat);
  at::Tensor cosine = at::empty({size, half}, host);
  at::Tensor sine = at::empty({size, half}, host);
  auto* c = cosine.mutable_data_ptr<float>();
  auto* s = sine.mutable_data_ptr<float>();
  for (int64_t position = 0; position < size; ++position) {
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies_[static_cast<size_t>(i)];
      c[position * half + i] = std::cos(angle) * factor_;
      s[position * half + i] = std::sin(angle) * factor_;
    }
  }
  cosine_ = cosine.to(device_, dtype_);
  sine_ = sine.to(device_, dtype_);
}

}  // namespace ciuic::core
