// SPDX-License-Identifier: MIT
// Causal attention from the tiles of avx512_tiles.h, one head at a time.
//
// A block of queries holds its scores against all keys before it, [kBlock, T], so the softmax is a
// plain one; the scores of other blocks never exist. Products walk in tiles of 14 rows and skip
// what lies above the diagonal tile by tile. Everything is f32 inside; a narrower type is widened
// when a head is read and rounded when it is written. Where the processor multiplies bf16,
// cpu_bf16_attention.cpp takes it.
//
// Backward recomputes the probabilities from the saved log sums (FlashAttention-2,
// arXiv:2307.08691, algorithm 2):
//   P = exp(scale Q K^T - L);  dV = P^T dO;  dS = scale P (dO V^T - rowsum(dO O));  dQ = dS K;  dK
//   = dS^T Q
#include <algorithm>
#include <cmath>

#include "core/model/kernels/attention_heads.h"
#include "core/model/kernels/avx512_tiles.h"
#include "core/model/kernels/blocked_attention.h"
#include "core/model/kernels/cpu_loops.h"

namespace ciuic::core::kernels {
namespace {

using avx512::kPanelDepth;
using avx512::kPanelWidth;
using avx512::kTileRows;
using avx512::View;
using namespace attention;

template <typename T>
CIUIC_CPU_CLONES void read_head(float* out, Head<const T> head, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    const T* in = head.data + row * head.stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      out[row * width + i] = static_cast<float>(in[i]);
    }
  }
}

// Writes rows, each times its factor; factors null: as they are.
template <typename T>
CIUIC_CPU_CLONES void write_head(Head<T> head, const float* in, int64_t rows, int64_t width,
                                 const float* factors) {
  for (int64_t row = 0; row < rows; ++row) {
    T* out = head.data + row * head.stride;
    const float factor = factors != nullptr ? factors[row] : 1.0f;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      out[i] = narrow<T>(in[row * width + i] * factor);
    }
  }
}

// A row-major [rows, width] matrix as the right factor of a product over its rows: panels of 32
// columns, full depth.
void pack_rows(float* panels, const float* matrix, int64_t rows, int64_t width) {
  for (int64_t first = 0; first < width; first += kPanelWidth) {
    avx512::pack_panel(panels + first * rows, {matrix + first, width, 1}, rows,
                       std::min(kPanelWidth, width - first));
  }
}

// Its transpose as the right factor of a product over its columns: panels of 32 of its rows.
void pack_transposed(float* panels, const float* matrix, int64_t rows, int64_t width) {
  for (int64_t first = 0; first < rows; first += kPanelWidth) {
    avx512::pack_panel(panels + first * width, {matrix + first * width, 1, width}, width,
                       std::min(kPanelWidth, rows - first));
  }
}

// scores[query - begin, key] = a[query] . b[key] for the tiles that touch the triangle key <=
// query. a: row-major [T, width]; b: packed by pack_transposed.
void triangle_scores(float* scores, int64_t stride, const float* a, const float* b, int64_t width,
                     int64_t begin, int64_t end) {
  for (int64_t key = 0; key < end; key += kPanelWidth) {
    const int64_t row = std::max(begin, key / kTileRows * kTileRows);
    avx512::multiply_panel(scores + (row - begin) * stride + key, stride,
                           {a + row * width, width, 1}, b + key * width, end - row, width,
                           kPanelWidth, /*adds=*/false);
  }
}

// out[query - begin] = sum over keys <= query of p[query - begin, key] matrix[key]; `p` is zero
// above the diagonal within a tile. matrix: packed by pack_rows, [T, width]; out: [end - begin,
// width].
void triangle_times(float* out, const float* p, int64_t stride, const float* matrix, int64_t tokens,
                    int64_t width, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; row += kTileRows) {
    const int64_t last = std::min(row + kTileRows, end);
    for (int64_t column = 0; column < width; column += kPanelWidth) {
      avx512::multiply_panel(out + (row - begin) * width + column, width,
                             {p + (row - begin) * stride, stride, 1}, matrix + column * tokens,
                             last - row, last, std::min(kPanelWidth, width - column),
                             /*adds=*/false);
    }
  }
}

// out[key] (+)= sum over queries >= key of p[query - begin, key] matrix[query]. A key's first block
// is the one that it lies in. matrix: packed by pack_rows, [T, width]; out: [T, width].
void transposed_triangle_times(float* out, const float* p, int64_t stride, const float* matrix,
                               int64_t tokens, int64_t width, int64_t begin, int64_t end) {
  for (int64_t key = 0; key < end; key += kTileRows) {
    const int64_t count = std::min(kTileRows, end - key);
    const int64_t query = std::max(begin, key);
    for (int64_t column = 0; column < width; column += kPanelWidth) {
      avx512::multiply_panel(out + key * width + column, width,
                             {p + (query - begin) * stride + key, 1, stride},
                             matrix + column * tokens + query * kPanelWidth, count, end - query,
                             std::min(kPanelWidth, width - column), /*adds=*/key < begin);
    }
  }
}

// A score whose exponential adds nothing to a sum that is 1 at least.
constexpr float kNever = -1e30f;

// Scores -> exp(scale (s - largest)), zero above the diagonal; log_sum and 1 / sum of each row.
CIUIC_CPU_CLONES void exponentials(float* scores, int64_t stride, float scale, int64_t begin,
                                   int64_t end, float* log_sum, float* inverse_sum) {
  for (int64_t query = begin; query < end; ++query) {
    float* s = scores + (query - begin) * stride;
    const int64_t keys = vector_end(query);
    std::fill(s + query + 1, s + keys, kNever);
    float largest = s[0];
#pragma omp simd reduction(max : largest)
    for (int64_t key = 0; key < keys; ++key) {
      largest = s[key] > largest ? s[key] : largest;
    }
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t key = 0; key < keys; ++key) {
      s[key] = exponential((s[key] - largest) * scale);
      sum += s[key];
    }
    std::fill(s + query + 1, s + tile_end(query, end), 0.0f);
    log_sum[query] = largest * scale + std::log(sum);
    inverse_sum[query - begin] = 1.0f / sum;
  }
}

// Scores -> probabilities; dp -> scale p (dp - dot). Both zero above the diagonal.
CIUIC_CPU_CLONES void probability_gradients(float* scores, float* dp, int64_t stride, float scale,
                                            int64_t begin, int64_t end, const float* log_sum,
                                            const float* dot) {
  for (int64_t query = begin; query < end; ++query) {
    float* s = scores + (query - begin) * stride;
    float* d = dp + (query - begin) * stride;
    const float lse = log_sum[query];
    const float mean = dot[query];
    const int64_t keys = vector_end(query);
#pragma omp simd
    for (int64_t key = 0; key < keys; ++key) {
      const float p = exponential(s[key] * scale - lse);
      s[key] = p;
      d[key] = scale * p * (d[key] - mean);
    }
    std::fill(s + query + 1, s + tile_end(query, end), 0.0f);
    std::fill(d + query + 1, d + tile_end(query, end), 0.0f);
  }
}

template <typename T>
CIUIC_CPU_CLONES void row_dots(float* dots, const float* a, Head<const T> b, int64_t rows,
                               int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    const T* other = b.data + row * b.stride;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) {
      sum += a[row * width + i] * static_cast<float>(other[i]);
    }
    dots[row] = sum;
  }
}

// Working memory of the forward of one head.
struct ForwardSpace {
  ForwardSpace(Arena& arena, const Sizes& z)
      : row_major(arena.take(z.tokens * std::max(z.key_dim, z.value_dim))),
        q(arena.take(z.tokens * z.key_dim)),
        k_transposed(arena.take(Sizes::panels(z.key_dim, z.tokens))),
        v_rows(arena.take(Sizes::panels(z.tokens, z.value_dim))),
        scores(arena.take(kBlock * z.score_stride())),
        out(arena.take(kBlock * z.value_dim)),
        inverse_sum(arena.take(kBlock)) {}
  float *row_major, *q, *k_transposed, *v_rows, *scores, *out, *inverse_sum;
};

template <typename T>
void forward_head(const Sizes& z, const ForwardSpace& space, Head<const T> q, Head<const T> k,
                  Head<const T> v, Head<T> out, float* log_sum, float scale) {
  read_head(space.q, q, z.tokens, z.key_dim);
  read_head(space.row_major, k, z.tokens, z.key_dim);
  pack_transposed(space.k_transposed, space.row_major, z.tokens, z.key_dim);
  read_head(space.row_major, v, z.tokens, z.value_dim);
  pack_rows(space.v_rows, space.row_major, z.tokens, z.value_dim);
  const int64_t stride = z.score_stride();
  for (int64_t begin = 0; begin < z.tokens; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, z.tokens);
    triangle_scores(space.scores, stride, space.q, space.k_transposed, z.key_dim, begin, end);
    exponentials(space.scores, stride, scale, begin, end, log_sum, space.inverse_sum);
    triangle_times(space.out, space.scores, stride, space.v_rows, z.tokens, z.value_dim, begin,
                   end);
    write_head(from_row(out, begin), space.out, end - begin, z.value_dim, space.inverse_sum);
  }
}

// Working memory of the backward of one head.
struct BackwardSpace {
  BackwardSpace(Arena& arena, const Sizes& z)
      : row_major(arena.take(z.tokens * std::max(z.key_dim, z.value_dim))),
        q(arena.take(z.tokens * z.key_dim)),
        dout(arena.take(z.tokens * z.value_dim)),
        k_transposed(arena.take(Sizes::panels(z.key_dim, z.tokens))),
        v_transposed(arena.take(Sizes::panels(z.value_dim, z.tokens))),
        q_rows(arena.take(Sizes::panels(z.tokens, z.key_dim))),
        k_rows(arena.take(Sizes::panels(z.tokens, z.key_dim))),
        dout_rows(arena.take(Sizes::panels(z.tokens, z.value_dim))),
        p(arena.take(kBlock * z.score_stride())),
        dp(arena.take(kBlock * z.score_stride())),
        dq(arena.take(kBlock * z.key_dim)),
        dk(arena.take(z.tokens * z.key_dim)),
        dv(arena.take(z.tokens * z.value_dim)),
        dots(arena.take(z.tokens)) {}
  float *row_major, *q, *dout, *k_transposed, *v_transposed, *q_rows, *k_rows, *dout_rows, *p, *dp,
      *dq, *dk, *dv, *dots;
};

template <typename T>
void backward_head(const Sizes& z, const BackwardSpace& space, const BackwardHeads<T>& heads,
                   float scale) {
  read_head(space.q, heads.q, z.tokens, z.key_dim);
  pack_rows(space.q_rows, space.q, z.tokens, z.key_dim);
  read_head(space.row_major, heads.k, z.tokens, z.key_dim);
  pack_rows(space.k_rows, space.row_major, z.tokens, z.key_dim);
  pack_transposed(space.k_transposed, space.row_major, z.tokens, z.key_dim);
  read_head(space.row_major, heads.v, z.tokens, z.value_dim);
  pack_transposed(space.v_transposed, space.row_major, z.tokens, z.value_dim);
  read_head(space.dout, heads.dout, z.tokens, z.value_dim);
  pack_rows(space.dout_rows, space.dout, z.tokens, z.value_dim);
  row_dots(space.dots, space.dout, heads.out, z.tokens, z.value_dim);
  const int64_t stride = z.score_stride();
  for (int64_t begin = 0; begin < z.tokens; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, z.tokens);
    triangle_scores(space.p, stride, space.q, space.k_transposed, z.key_dim, begin, end);
    triangle_scores(space.dp, stride, space.dout, space.v_transposed, z.value_dim, begin, end);
    probability_gradients(space.p, space.dp, stride, scale, begin, end, heads.log_sum, space.dots);
    triangle_times(space.dq, space.dp, stride, space.k_rows, z.tokens, z.key_dim, begin, end);
    write_head(from_row(heads.dq, begin), space.dq, end - begin, z.key_dim, nullptr);
    transposed_triangle_times(space.dk, space.dp, stride, space.q_rows, z.tokens, z.key_dim, begin,
                              end);
    transposed_triangle_times(space.dv, space.p, stride, space.dout_rows, z.tokens, z.value_dim,
                              begin, end);
  }
  write_head(heads.dk, space.dk, z.tokens, z.key_dim, nullptr);
  write_head(heads.dv, space.dv, z.tokens, z.value_dim, nullptr);
}

template <typename Body>
void with_narrow_dtype(at::ScalarType dtype, const Body& body) {
  if (dtype == at::kBFloat16) {
    body(c10::BFloat16{});
  } else if (dtype == at::kHalf) {
    body(c10::Half{});
  } else {
    body(float{});
  }
}

}  // namespace

bool has_blocked_attention(at::ScalarType dtype) {
  static const bool is_supported = avx512::is_supported();
  return is_supported && (dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf);
}

at::Tensor blocked_attention(const at::Tensor& q_BTHd, const at::Tensor& k_BTHd,
                             const at::Tensor& v_BTHd, const AttentionRule& rule,
                             at::Tensor* log_sum_BHT) {
  if (has_bf16_attention(q_BTHd.scalar_type())) {
    return bf16_attention(q_BTHd, k_BTHd, v_BTHd, rule, log_sum_BHT);
  }
  at::Tensor out_BTHd;
  with_narrow_dtype(q_BTHd.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    out_BTHd = attention_of_heads<T, ForwardSpace>(q_BTHd, k_BTHd, v_BTHd, rule, log_sum_BHT,
                                                   forward_head<T>);
  });
  return out_BTHd;
}

AttentionGradient blocked_attention_backward(const at::Tensor& dout_BTHd, const AttentionTape& tape,
                                             const AttentionRule& rule, const at::Tensor& dv_BTHd) {
  if (has_bf16_attention(dout_BTHd.scalar_type())) {
    return bf16_attention_backward(dout_BTHd, tape, rule, dv_BTHd);
  }
  AttentionGradient g;
  with_narrow_dtype(dout_BTHd.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    g = attention_gradient_of_heads<T, BackwardSpace>(dout_BTHd, tape, rule, dv_BTHd,
                                                      backward_head<T>);
  });
  return g;
}

}  // namespace ciuic::core::kernels
