// SPDX-License-Identifier: MIT
#include "core/model/latent_cache.h"

#include <algorithm>
#include <string>

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <ciuic/error.hpp>

namespace ciuic::core {
namespace {

constexpr int64_t kFirstCapacity = 64;

}  // namespace

LatentCache::LatentCache(const ModelConfig& config, at::ScalarType dtype, at::Device device)
    : width_(config.kv_lora_rank + config.qk_rope_head_dim),
      limit_(config.max_position_embeddings) {
  const c10::InferenceMode no_tape;
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    layers_.push_back(at::empty({0, width_}, at::TensorOptions().dtype(dtype).device(device)));
  }
}

int64_t LatentCache::bytes() const {
  int64_t sum = 0;
  for (const at::Tensor& layer : layers_) {
    sum += static_cast<int64_t>(layer.nbytes());
  }
  return sum;
}

int64_t LatentCache::token_bytes() const {
  return static_cast<int64_t>(layers_.size()) * width_ *
         static_cast<int64_t>(layers_.front().element_size());
}

void LatentCache::begin(int64_t count) {
  const c10::InferenceMode no_tape;
  const int64_t wanted = length_ + count;
  if (wanted > limit_) {
    throw Error(CIUIC_INVALID,
                "model: a context of " + std::to_string(wanted) + " tokens, expected at most " +
                    std::to_string(limit_) +
                    " (max_position_embeddings); shorten the prompt or generate fewer tokens");
  }
  added_ = count;
  const int64_t capacity = layers_.front().size(0);
  if (wanted <= capacity) {
    return;
  }
  // By doubling: a token is copied about once more.
  const int64_t size = std::min(limit_, std::max({wanted, 2 * capacity, kFirstCapacity}));
  for (at::Tensor& layer : layers_) {
    const at::Tensor larger = at::empty({size, width_}, layer.options());
    larger.narrow(0, 0, length_).copy_(layer.narrow(0, 0, length_));
    layer = larger;
  }
}

void LatentCache::commit() {
  length_ += added_;
  added_ = 0;
}

}  // namespace ciuic::core
