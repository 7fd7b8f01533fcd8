// SPDX-License-Identifier: MIT
#include "core/model/activation_bytes.h"

#include <algorithm>

namespace ciuic::core {
namespace {

constexpr int64_t kWide = 4;                           // f32 beside narrower activations
constexpr int64_t kIndex = 4;                          // int32
constexpr int64_t kHeadChunkBytes = int64_t{4} << 20;  // as in head.cpp

class Count {
 public:
  Count(const ModelConfig& c, const ActivationShape& s)
      : c_(c), s_(s), n_(s.rows * s.tokens), e_(s.element_bytes) {}

  ActivationBytes total() const {
    const int64_t depths = c_.num_nextn_predict_layers;
    ActivationBytes all;
    int64_t most = head();
    for (int64_t layer = 0; layer < c_.num_layers(); ++layer) {
      all.kept += kept(layer);
      most = std::max(most, backward(layer));
    }
    // The last layer's output, and per depth the embedding, the projected input of its layer (which
    // is the tape's x), the output and what the head gets.
    all.kept += hidden() * (1 + 3 * depths);
    all.passing = most;
    return all;
  }

 private:
  [[nodiscard]] int64_t hidden() const { return n_ * c_.hidden_size * e_; }
  [[nodiscard]] int64_t per_token(int64_t values) const { return n_ * values * e_; }

  [[nodiscard]] bool has_narrow_copies() const { return e_ < kWide && s_.has_narrow_copies; }
  // Rows of all experts' groups: LibTorch's are rounded up to 32 in bf16, by 16 on average.
  [[nodiscard]] int64_t expert_rows() const {
    return n_ * c_.num_experts_per_tok + (has_narrow_copies() ? 16 * c_.n_routed_experts : 0);
  }
  [[nodiscard]] int64_t query_latent() const { return c_.q_lora_rank.value_or(0); }
  [[nodiscard]] int64_t keys() const { return c_.num_attention_heads * c_.qk_head_dim(); }
  [[nodiscard]] int64_t keys_values() const {
    return c_.num_attention_heads * (c_.qk_nope_head_dim + c_.v_head_dim);
  }
  [[nodiscard]] int64_t values() const { return c_.num_attention_heads * c_.v_head_dim; }

  // What selective recomputation drops: the normed inputs, and from the latents upwards.
  [[nodiscard]] int64_t dropped_by_selective() const {
    return per_token(2 * c_.hidden_size + query_latent() + c_.kv_lora_rank + 2 * keys() +
                     keys_values());
  }
  [[nodiscard]] int64_t attention_rest() const {
    const int64_t log_sums = n_ * c_.num_attention_heads * kWide;
    return per_token(query_latent() + c_.kv_lora_rank + c_.qk_rope_head_dim + values()) + log_sums;
  }
  [[nodiscard]] int64_t feed_forward_kept(int64_t layer) const {
    if (!c_.is_moe_layer(layer)) {
      return per_token(2 * c_.intermediate_size);
    }
    const int64_t k = c_.num_experts_per_tok;
    const int64_t routing = n_ * k * (2 * kIndex + 2 * kWide) + expert_rows() * kIndex;
    const bool keeps_scores = s_.has_balance || c_.scoring_func == "softmax";
    const int64_t scores =
        n_ * c_.n_routed_experts * kWide * ((keeps_scores ? 1 : 0) + (s_.has_router_z ? 1 : 0));
    return routing + scores + expert_rows() * 2 * c_.moe_intermediate_size * e_ +
           per_token(2 * c_.shared_intermediate_size());
  }
  [[nodiscard]] int64_t whole(int64_t layer) const {
    const int64_t rstds = 4 * n_ * kWide;
    return 2 * hidden() + rstds + dropped_by_selective() + attention_rest() +
           feed_forward_kept(layer);
  }
  [[nodiscard]] int64_t kept(int64_t layer) const {
    switch (s_.recompute) {
      case Recompute::Full:
        return hidden();
      case Recompute::Selective:
        return whole(layer) - dropped_by_selective();
      case Recompute::None:
        break;
    }
    return whole(layer);
  }

  // Besides all tapes: what is computed again, then the larger of the two halves of the layer. The
  // gradient that comes in is one hidden state.
  [[nodiscard]] int64_t backward(int64_t layer) const {
    const int64_t again = whole(layer) - kept(layer);
    return again + hidden() + std::max(feed_forward_backward(layer), attention_backward(layer));
  }
  [[nodiscard]] int64_t feed_forward_backward(int64_t layer) const {
    if (!c_.is_moe_layer(layer)) {
      return per_token(c_.intermediate_size) + hidden() +
             narrow_gradient(2 * c_.intermediate_size * c_.hidden_size) +
             packed(per_token(2 * c_.intermediate_size));
    }
    const int64_t rows = expert_rows();
    return rows * (2 * c_.hidden_size + c_.moe_intermediate_size) * e_ +
           per_token(c_.shared_intermediate_size()) + hidden() + wide_router() +
           narrow_gradient(2 * std::max(c_.shared_intermediate_size(), c_.moe_intermediate_size) *
                           c_.hidden_size);
  }
  // The router computes in f32: the tokens, and their gradient.
  [[nodiscard]] int64_t wide_router() const {
    return e_ < kWide ? 2 * n_ * c_.hidden_size * kWide : 0;
  }
  // The feed-forward's tape is gone by then.
  [[nodiscard]] int64_t attention_backward(int64_t layer) const {
    const int64_t gradients = per_token(2 * keys() + keys_values() + values() + 2 * query_latent() +
                                        2 * c_.kv_lora_rank + c_.qk_rope_head_dim);
    return gradients + 3 * hidden() - feed_forward_kept(layer);
  }

  // hidden's own part is a tape; normed, its gradient and one chunk of logits, or the gradient that
  // is handed down.
  [[nodiscard]] int64_t head() const {
    const int64_t chunk = std::max<int64_t>(64, kHeadChunkBytes / (c_.vocab_size * e_) / 64 * 64);
    const int64_t logits =
        std::min(chunk, n_) * c_.vocab_size * e_ + narrow_gradient(c_.vocab_size * c_.hidden_size);
    return 2 * hidden() + std::max(logits, hidden());
  }

  // LibTorch's narrow products pack a transposed factor: four fifths of it were seen.
  [[nodiscard]] int64_t packed(int64_t bytes) const {
    return has_narrow_copies() ? bytes * 4 / 5 : 0;
  }

  // LibTorch's product of narrow activations is rounded once before it is added to an f32 gradient.
  [[nodiscard]] int64_t narrow_gradient(int64_t elements) const {
    return has_narrow_copies() ? elements * e_ : 0;
  }

  const ModelConfig& c_;
  const ActivationShape& s_;
  int64_t n_, e_;
};

}  // namespace

ActivationBytes activation_bytes(const ModelConfig& config, const ActivationShape& shape) {
  return Count(config, shape).total();
}

}  // namespace ciuic::core
