// SPDX-License-Identifier: MIT
// Causal attention in bf16 from the tiles of bf16_tiles.h, by the plan of cpu_blocked_attention.cpp.
//
// Queries, keys, values and the gradient that comes in are factors where they lie or once packed;
// nothing is widened. Scores and sums are f32. Pairs along the tokens start at even ones, which
// blocks and tiles do.
#include <algorithm>
#include <cmath>

#include "core/model/kernels/attention_heads.h"
#include "core/model/kernels/bf16_tiles.h"
#include "core/model/kernels/blocked_attention.h"
#include "core/model/kernels/cpu_bf16_product.h"
#include "core/model/kernels/cpu_loops.h"

namespace ciuic::core::kernels {
namespace {

using namespace attention;
using bf16::Bits;
using bf16::Left;
using bf16::Pair;
using bf16::pairs_of;

static_assert(kTile == bf16::kTileRows && kPanel == bf16::kPanelWidth && kTile % 2 == 0);

using In = Head<const Bits>;
using Out = Head<Bits>;

[[gnu::always_inline]] inline float wide(Bits bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
[[gnu::always_inline]] inline Bits rounded(float value) { return narrow<c10::BFloat16>(value).x; }

// [rows, width] as the right factor of a product over its rows: panels of 32 columns.
void pack_rows(Pair* panels, In matrix, int64_t rows, int64_t width) {
  for (int64_t first = 0; first < width; first += kPanel) {
    bf16::pack_panel(panels + first * pairs_of(rows), {matrix.data + first, matrix.stride, 1}, rows,
                     std::min(kPanel, width - first));
  }
}

// Its transpose as the right factor of a product over its columns: panels of 32 of its rows.
void pack_transposed(Pair* panels, In matrix, int64_t rows, int64_t width) {
  for (int64_t first = 0; first < rows; first += kPanel) {
    bf16::pack_panel(panels + first * pairs_of(width),
                     {matrix.data + first * matrix.stride, 1, matrix.stride}, width,
                     std::min(kPanel, rows - first));
  }
}

// scores[query - begin, key] = a[query] . b[key] for the tiles that touch the triangle key <=
// query. b: packed by pack_transposed.
void triangle_scores(float* scores, int64_t stride, In a, const Pair* b, int64_t width,
                     int64_t begin, int64_t end) {
  for (int64_t key = 0; key < end; key += kPanel) {
    const int64_t row = std::max(begin, key / kTile * kTile);
    bf16::multiply_panel(scores + (row - begin) * stride + key, stride,
                         Left::in_rows(a.data + row * a.stride, a.stride, width),
                         b + key * pairs_of(width), end - row, kPanel, /*adds=*/false);
  }
}

// out[query - begin] = sum over keys <= query of p[query - begin, key] matrix[key]; `p` is zero
// above the diagonal within a tile. matrix: packed by pack_rows; out: [end - begin, width].
void triangle_times(float* out, const Bits* p, int64_t stride, const Pair* matrix, int64_t tokens,
                    int64_t width, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; row += kTile) {
    const int64_t last = std::min(row + kTile, end);
    const Left left = Left::in_rows(p + (row - begin) * stride, stride, last);
    for (int64_t column = 0; column < width; column += kPanel) {
      bf16::multiply_panel(out + (row - begin) * width + column, width, left,
                           matrix + column * pairs_of(tokens), last - row,
                           std::min(kPanel, width - column), /*adds=*/false);
    }
  }
}

// One tile of keys of a block, as the left factor of products over its queries.
struct KeyTile {
  int64_t key, count;    // keys
  int64_t query, depth;  // queries from the diagonal or the block's begin on
  bool adds;             // a key's first block is the one that it lies in
};

// out[key] (+)= sum over queries of p[query - begin, key] matrix[query]. matrix: packed by
// pack_rows; out: [T, width].
void key_tile_times(float* out, const Bits* p, int64_t stride, const Pair* matrix, int64_t tokens,
                    int64_t width, const KeyTile& t, Pair* tiles) {
  bf16::pack_tiles(tiles, {p + t.key, 1, stride}, t.count, t.depth);
  for (int64_t column = 0; column < width; column += kPanel) {
    bf16::multiply_panel(out + t.key * width + column, width, Left::in_tiles(tiles, t.depth),
                         matrix + column * pairs_of(tokens) + t.query / 2 * kPanel, t.count,
                         std::min(kPanel, width - column), t.adds);
  }
}

// A score whose exponential adds nothing to a sum that is 1 at least.
constexpr float kNever = -1e30f;

// p = exp(scale (s - largest)) of the scores, zero above the diagonal; log_sum and 1 / sum of each
// row. The sum is of what is multiplied with the values: rounded.
CIUIC_CPU_CLONES void exponentials(float* scores, Bits* probabilities, int64_t stride, float scale,
                                   int64_t begin, int64_t end, float* log_sum, float* inverse_sum) {
  for (int64_t query = begin; query < end; ++query) {
    float* s = scores + (query - begin) * stride;
    Bits* p = probabilities + (query - begin) * stride;
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
      const Bits bits = rounded(exponential((s[key] - largest) * scale));
      p[key] = bits;
      sum += wide(bits);
    }
    std::fill(p + query + 1, p + tile_end(query, end), Bits{0});
    log_sum[query] = largest * scale + std::log(sum);
    inverse_sum[query - begin] = 1.0f / sum;
  }
}

// Scores -> probabilities, dp -> scale p (dp - dot), rounded. Both zero above the diagonal.
CIUIC_CPU_CLONES void probability_gradients(const float* scores, const float* dp, Bits* p_out,
                                            Bits* ds_out, int64_t stride, float scale,
                                            int64_t begin, int64_t end, const float* log_sum,
                                            const float* dot) {
  for (int64_t query = begin; query < end; ++query) {
    const int64_t row = (query - begin) * stride;
    const float* s = scores + row;
    const float* d = dp + row;
    Bits* p = p_out + row;
    Bits* ds = ds_out + row;
    const float lse = log_sum[query];
    const float mean = dot[query];
    const int64_t keys = vector_end(query);
#pragma omp simd
    for (int64_t key = 0; key < keys; ++key) {
      const float value = exponential(s[key] * scale - lse);
      p[key] = rounded(value);
      ds[key] = rounded(scale * value * (d[key] - mean));
    }
    std::fill(p + query + 1, p + tile_end(query, end), Bits{0});
    std::fill(ds + query + 1, ds + tile_end(query, end), Bits{0});
  }
}

CIUIC_CPU_CLONES void row_dots(float* dots, In a, In b, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    const Bits* one = a.data + row * a.stride;
    const Bits* other = b.data + row * b.stride;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) {
      sum += wide(one[i]) * wide(other[i]);
    }
    dots[row] = sum;
  }
}

// Writes rows, each times its factor; factors null: as they are.
CIUIC_CPU_CLONES void write_rows(Out head, const float* in, int64_t rows, int64_t width,
                                 const float* factors) {
  for (int64_t row = 0; row < rows; ++row) {
    Bits* out = head.data + row * head.stride;
    const float factor = factors != nullptr ? factors[row] : 1.0f;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      out[i] = rounded(in[row * width + i] * factor);
    }
  }
}

Pair* take_pairs(Arena& arena, int64_t size) { return reinterpret_cast<Pair*>(arena.take(size)); }
Bits* take_bits(Arena& arena, int64_t size) {
  return reinterpret_cast<Bits*>(arena.take(pairs_of(size)));
}

// Working memory of the forward of one head.
struct ForwardSpace {
  ForwardSpace(Arena& arena, const Sizes& z)
      : k_transposed(take_pairs(arena, Sizes::panels(pairs_of(z.key_dim), z.tokens))),
        v_rows(take_pairs(arena, Sizes::panels(pairs_of(z.tokens), z.value_dim))),
        scores(arena.take(kBlock * z.score_stride())),
        p(take_bits(arena, kBlock * z.score_stride())),
        out(arena.take(kBlock * z.value_dim)),
        inverse_sum(arena.take(kBlock)) {}
  Pair *k_transposed, *v_rows;
  float* scores;
  Bits* p;
  float *out, *inverse_sum;
};

void forward_head(const Sizes& z, const ForwardSpace& space, In q, In k, In v, Out out,
                  float* log_sum, float scale) {
  pack_transposed(space.k_transposed, k, z.tokens, z.key_dim);
  pack_rows(space.v_rows, v, z.tokens, z.value_dim);
  const int64_t stride = z.score_stride();
  for (int64_t begin = 0; begin < z.tokens; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, z.tokens);
    triangle_scores(space.scores, stride, q, space.k_transposed, z.key_dim, begin, end);
    exponentials(space.scores, space.p, stride, scale, begin, end, log_sum, space.inverse_sum);
    triangle_times(space.out, space.p, stride, space.v_rows, z.tokens, z.value_dim, begin, end);
    write_rows(from_row(out, begin), space.out, end - begin, z.value_dim, space.inverse_sum);
  }
}

// Working memory of the backward of one head.
struct BackwardSpace {
  BackwardSpace(Arena& arena, const Sizes& z)
      : k_transposed(take_pairs(arena, Sizes::panels(pairs_of(z.key_dim), z.tokens))),
        v_transposed(take_pairs(arena, Sizes::panels(pairs_of(z.value_dim), z.tokens))),
        q_rows(take_pairs(arena, Sizes::panels(pairs_of(z.tokens), z.key_dim))),
        k_rows(take_pairs(arena, Sizes::panels(pairs_of(z.tokens), z.key_dim))),
        dout_rows(take_pairs(arena, Sizes::panels(pairs_of(z.tokens), z.value_dim))),
        tiles(take_pairs(arena, bf16::packed_size(kTile, kBlock))),
        scores(arena.take(kBlock * z.score_stride())),
        dscores(arena.take(kBlock * z.score_stride())),
        p(take_bits(arena, kBlock * z.score_stride())),
        ds(take_bits(arena, kBlock * z.score_stride())),
        dq(arena.take(kBlock * z.key_dim)),
        dk(arena.take(z.tokens * z.key_dim)),
        dv(arena.take(z.tokens * z.value_dim)),
        dots(arena.take(z.tokens)) {}
  Pair *k_transposed, *v_transposed, *q_rows, *k_rows, *dout_rows, *tiles;
  float *scores, *dscores;
  Bits *p, *ds;
  float *dq, *dk, *dv, *dots;
};

// Gradients of keys and values by way of the queries of one block.
void key_gradients(const Sizes& z, const BackwardSpace& space, int64_t begin, int64_t end) {
  const int64_t stride = z.score_stride();
  for (int64_t key = 0; key < end; key += kTile) {
    const int64_t query = std::max(begin, key);
    const KeyTile tile{key, std::min(kTile, end - key), query, end - query, key < begin};
    const int64_t row = (query - begin) * stride;
    key_tile_times(space.dk, space.ds + row, stride, space.q_rows, z.tokens, z.key_dim, tile,
                   space.tiles);
    key_tile_times(space.dv, space.p + row, stride, space.dout_rows, z.tokens, z.value_dim, tile,
                   space.tiles);
  }
}

void backward_head(const Sizes& z, const BackwardSpace& space, const BackwardHeads<Bits>& heads,
                   float scale) {
  pack_rows(space.q_rows, heads.q, z.tokens, z.key_dim);
  pack_rows(space.k_rows, heads.k, z.tokens, z.key_dim);
  pack_transposed(space.k_transposed, heads.k, z.tokens, z.key_dim);
  pack_transposed(space.v_transposed, heads.v, z.tokens, z.value_dim);
  pack_rows(space.dout_rows, heads.dout, z.tokens, z.value_dim);
  row_dots(space.dots, heads.dout, heads.out, z.tokens, z.value_dim);
  const int64_t stride = z.score_stride();
  for (int64_t begin = 0; begin < z.tokens; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, z.tokens);
    triangle_scores(space.scores, stride, heads.q, space.k_transposed, z.key_dim, begin, end);
    triangle_scores(space.dscores, stride, heads.dout, space.v_transposed, z.value_dim, begin, end);
    probability_gradients(space.scores, space.dscores, space.p, space.ds, stride, scale, begin, end,
                          heads.log_sum, space.dots);
    triangle_times(space.dq, space.ds, stride, space.k_rows, z.tokens, z.key_dim, begin, end);
    write_rows(from_row(heads.dq, begin), space.dq, end - begin, z.key_dim, nullptr);
    key_gradients(z, space, begin, end);
  }
  write_rows(heads.dk, space.dk, z.tokens, z.key_dim, nullptr);
  write_rows(heads.dv, space.dv, z.tokens, z.value_dim, nullptr);
}

}  // namespace

bool has_bf16_attention(at::ScalarType dtype) {
  return dtype == at::kBFloat16 && has_cpu_bf16_products();
}

at::Tensor bf16_attention(const at::Tensor& q_BTHd, const at::Tensor& k_BTHd,
                          const at::Tensor& v_BTHd, const AttentionRule& rule,
                          at::Tensor* log_sum_BHT) {
  return attention_of_heads<Bits, ForwardSpace>(q_BTHd, k_BTHd, v_BTHd, rule, log_sum_BHT,
                                                forward_head);
}

AttentionGradient bf16_attention_backward(const at::Tensor& dout_BTHd, const AttentionTape& tape,
                                          const AttentionRule& rule, const at::Tensor& dv_BTHd) {
  return attention_gradient_of_heads<Bits, BackwardSpace>(dout_BTHd, tape, rule, dv_BTHd,
                                                          backward_head);
}

}  // namespace ciuic::core::kernels
