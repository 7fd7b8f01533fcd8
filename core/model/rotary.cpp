// SPDX-License-Identifier: MIT
// Tables of rotary angles.
#include "core/model/rotary.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/empty.h>

namespace ciuic::core {

Rotary::Rotary(int64_t rope_dim, double theta, at::ScalarType dtype, at::Device device)
    : rope_dim_(rope_dim), theta_(theta), dtype_(dtype), device_(device) {}

void Rotary::reserve(int64_t num_positions) {
  const int64_t held = cosine_.defined() ? cosine_.size(0) : 0;
  if (num_positions <= held) {
    return;
  }
  const int64_t size = std::max(num_positions, 2 * held);
  const int64_t half = rope_dim_ / 2;
  const at::TensorOptions host = at::TensorOptions().dtype(at::kFloat);
  at::Tensor cosine = at::empty({size, half}, host);
  at::Tensor sine = at::empty({size, half}, host);
  auto* c = cosine.mutable_data_ptr<float>();
  auto* s = sine.mutable_data_ptr<float>();
  for (int64_t i = 0; i < half; ++i) {
    // f32 throughout, as in transformers' DeepseekV3RotaryEmbedding.
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rope_dim_);
    const float frequency = 1.0f / std::pow(static_cast<float>(theta_), exponent);
    for (int64_t position = 0; position < size; ++position) {
      const float angle = static_cast<float>(position) * frequency;
      c[position * half + i] = std::cos(angle);
      s[position * half + i] = std::sin(angle);
    }
  }
  cosine_ = cosine.to(device_, dtype_);
  sine_ = sine.to(device_, dtype_);
}

}  // namespace ciuic::core
