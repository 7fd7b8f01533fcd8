// SPDX-License-Identifier: MIT
#pragma once

// What generation keeps of the tokens so far: per token and layer the normed key/value latent and
// the shared rotary key (turned by its position), kv_lora_rank + qk_rope_head_dim values. Keys and
// values of the heads are never kept. Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.2, table 1.
//
// One sequence. Tokens are added in a transaction over all layers: `begin`, each layer writes its
// new rows, `commit`. What an exception leaves uncommitted is not there.

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/model_config.h"

namespace ciuic::core {

class LatentCache final {
 public:
  /// `dtype`: that of the model's activations.
  LatentCache(const ModelConfig& config, at::ScalarType dtype, at::Device device);

  /// Tokens in it, and how many it can hold: max_position_embeddings.
  [[nodiscard]] int64_t length() const { return length_; }
  [[nodiscard]] int64_t limit() const { return limit_; }
  /// Memory that is taken now, and what each token needs.
  [[nodiscard]] int64_t bytes() const;
  [[nodiscard]] int64_t token_bytes() const;

  /// Room for `count` tokens after the `length()` that are there.
  /// Throws: Error (INVALID) beyond the limit.
  void begin(int64_t count);
  /// [length() + count of begin, C + R], contiguous: old rows, and new ones to be written.
  [[nodiscard]] at::Tensor layer(int64_t layer) const {
    return layers_[static_cast<size_t>(layer)].narrow(0, 0, length_ + added_);
  }
  /// Tokens that begin() made room for.
  [[nodiscard]] int64_t added() const { return added_; }
  void commit();

  /// Forgets all tokens; keeps the memory.
  void clear() { length_ = added_ = 0; }

 private:
  std::vector<at::Tensor> layers_;  // [capacity, C + R]
  int64_t width_;
  int64_t limit_;
  int64_t length_ = 0;
  int64_t added_ = 0;
};

}  // namespace ciuic::core
