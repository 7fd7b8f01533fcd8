// SPDX-License-Identifier: MIT
#pragma once

// What the blocked attention kernels of f32 and of bf16 share: heads in memory, working memory, and
// the walk over all heads, forward and backward.

#include <algorithm>
#include <cstdint>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "core/model/kernels/aligned_buffer.h"
#include "core/model/kernels/blocked_attention.h"
#include "core/model/rows.h"

namespace ciuic::core::kernels::attention {

// Tiles of both types have this shape.
inline constexpr int64_t kTile = 14;
inline constexpr int64_t kPanel = 32;
// Queries per block. A multiple of a tile, so that a tile of keys meets the diagonal in one block
// only.
inline constexpr int64_t kBlock = 8 * kTile;

inline int64_t rounded_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Of one head of one span.
struct Sizes {
  int64_t tokens, key_dim, value_dim;

  [[nodiscard]] int64_t score_stride() const { return rounded_up(tokens, kPanel); }
  /// Words of a matrix in panels, `lines` words deep: rows of f32, or pairs of rows of bf16.
  static int64_t panels(int64_t lines, int64_t width) { return lines * rounded_up(width, kPanel); }
};

// Hands out parts of a thread's memory, each 64-byte aligned. Without memory it only counts.
class Arena final {
 public:
  explicit Arena(float* base) : base_(base) {}
  float* take(int64_t size) {
    float* part = base_ != nullptr ? base_ + used_ : nullptr;
    used_ += rounded_up(size, 16);
    return part;
  }
  [[nodiscard]] int64_t used() const { return used_; }

 private:
  float* base_;
  int64_t used_ = 0;
};

// One head of a span of a [B, T, H, d] tensor.
template <typename T>
struct Head {
  T* data;
  int64_t stride;
};

// T is the tensor's type, or one of the same size for its bits.
template <typename T>
Head<const T> head_of(const at::Tensor& x, const Rows::Span& span, int64_t head) {
  return {static_cast<const T*>(x.const_data_ptr()) + span.row * x.stride(0) +
              span.begin * x.stride(1) + head * x.stride(2),
          x.stride(1)};
}
template <typename T>
Head<T> writable_head_of(const at::Tensor& x, const Rows::Span& span, int64_t head) {
  const Head<const T> found = head_of<T>(x, span, head);
  return {const_cast<T*>(found.data), found.stride};
}

template <typename T>
Head<T> from_row(Head<T> head, int64_t row) {
  return {head.data + row * head.stride, head.stride};
}

// End of the tile that a query lies in: as far as products read its row of probabilities.
inline int64_t tile_end(int64_t query, int64_t end) {
  return std::min((query / kTile + 1) * kTile, end);
}

// End of the keys that vectors of 16 read: whole vectors, so that a loop has no scalar rest.
inline int64_t vector_end(int64_t query) { return (query / 16 + 1) * 16; }

// The work of one head of a span in the backward.
template <typename T>
struct BackwardHeads {
  Head<const T> q, k, v, out, dout;
  const float* log_sum;
  Head<T> dq, dk, dv;
};

// Calls body(sizes, space, span, head) for all heads of all spans, spread over the threads, each with
// its own working memory.
template <typename Space, typename Body>
void for_each_head(const at::Tensor& q_BTHd, const at::Tensor& v_BTHd, const Rows& rows,
                   const Body& body) {
  const int64_t heads = q_BTHd.size(2);
  const Sizes longest{rows.num_positions(), q_BTHd.size(3), v_BTHd.size(3)};
  Arena counter(nullptr);
  const Space counted(counter, longest);
  const auto spans = static_cast<int64_t>(rows.spans.size());
  at::parallel_for(0, spans * heads, 1, [&](int64_t begin, int64_t end) {
    thread_local AlignedBuffer<float> buffer;
    float* memory = buffer.reserve(counter.used());
    for (int64_t i = begin; i < end; ++i) {
      const Rows::Span& span = rows.spans[static_cast<size_t>(i / heads)];
      const Sizes sizes{span.length, longest.key_dim, longest.value_dim};
      Arena arena(memory);
      body(sizes, Space(arena, sizes), span, i % heads);
    }
  });
}

// The log sums of a span's head in [B, H, T].
inline float* log_sums_of(const at::Tensor& log_sum_BHT, const Rows::Span& span, int64_t head) {
  return const_cast<float*>(log_sum_BHT.const_data_ptr<float>()) +
         span.row * log_sum_BHT.stride(0) + head * log_sum_BHT.stride(1) + span.begin;
}

// blocked_attention by forward_head(sizes, space, q, k, v, out, log_sum, scale) for each head.
template <typename T, typename Space, typename ForwardHead>
at::Tensor attention_of_heads(const at::Tensor& q_BTHd, const at::Tensor& k_BTHd,
                              const at::Tensor& v_BTHd, const AttentionRule& rule,
                              at::Tensor* log_sum_BHT, const ForwardHead& forward_head) {
  at::Tensor out_BTHd = at::empty(v_BTHd.sizes(), v_BTHd.options());
  *log_sum_BHT = at::empty({q_BTHd.size(0), q_BTHd.size(2), q_BTHd.size(1)},
                           q_BTHd.options().dtype(at::kFloat));
  for_each_head<Space>(
      q_BTHd, v_BTHd, rule.rows,
      [&](const Sizes& z, const Space& space, const Rows::Span& span, int64_t head) {
        forward_head(z, space, head_of<T>(q_BTHd, span, head), head_of<T>(k_BTHd, span, head),
                     head_of<T>(v_BTHd, span, head), writable_head_of<T>(out_BTHd, span, head),
                     log_sums_of(*log_sum_BHT, span, head), static_cast<float>(rule.scale));
      });
  return out_BTHd;
}

// blocked_attention_backward by backward_head(sizes, space, heads, scale) for each head.
template <typename T, typename Space, typename BackwardHead>
AttentionGradient attention_gradient_of_heads(const at::Tensor& dout_BTHd,
                                              const AttentionTape& tape, const AttentionRule& rule,
                                              const at::Tensor& dv_BTHd,
                                              const BackwardHead& backward_head) {
  const AttentionGradient g{at::empty(tape.q_BTHd.sizes(), tape.q_BTHd.options()),
                            at::empty(tape.k_BTHd.sizes(), tape.k_BTHd.options())};
  for_each_head<Space>(
      tape.q_BTHd, tape.v_BTHd, rule.rows,
      [&](const Sizes& z, const Space& space, const Rows::Span& span, int64_t head) {
        const BackwardHeads<T> heads{
            head_of<T>(tape.q_BTHd, span, head),        head_of<T>(tape.k_BTHd, span, head),
            head_of<T>(tape.v_BTHd, span, head),        head_of<T>(tape.out_BTHd, span, head),
            head_of<T>(dout_BTHd, span, head),          log_sums_of(tape.log_sum_BHT, span, head),
            writable_head_of<T>(g.dq_BTHd, span, head), writable_head_of<T>(g.dk_BTHd, span, head),
            writable_head_of<T>(dv_BTHd, span, head),
        };
        backward_head(z, space, heads, static_cast<float>(rule.scale));
      });
  return g;
}

}  // namespace ciuic::core::kernels::attention
