// SPDX-License-Identifier: MIT
// MLA heads on the CPU: rotation in place, keys assembled in one pass.
#include <algorithm>
#include <vector>

#include <ATen/ops/empty.h>

#include "core/model/kernels/cpu_loops.h"
#include "core/model/kernels/mla_heads.h"

namespace ciuic::core::kernels::cpu {
namespace {

// out may be in. direction: 1 turns by the angle, -1 back. `next`: from one pair to the next;
// `apart`: from a pair's first element to its second.
template <typename In, typename Out, typename A>
[[gnu::always_inline]] inline void turn_pairs(const In* in, Out* out, const A* c, const A* s,
                                              int64_t half, A direction, int64_t next,
                                              int64_t apart) {
#pragma omp simd
  for (int64_t i = 0; i < half; ++i) {
    const A re = static_cast<A>(in[next * i]);
    const A im = static_cast<A>(in[next * i + apart]);
    const A sine = s[i] * direction;
    out[next * i] = narrow<Out>(re * c[i] - im * sine);
    out[next * i + apart] = narrow<Out>(re * sine + im * c[i]);
  }
}

template <typename A>
struct Table {
  explicit Table(const Angles& angles)
      : cosine(angles.cosine.const_data_ptr<A>()),
        sine(angles.sine.const_data_ptr<A>()),
        half(angles.cosine.size(1)),
        positions(angles.num_positions),
        position_of_row(angles.positions_N.defined() ? angles.positions_N.const_data_ptr<int32_t>()
                                                     : nullptr),
        is_interleaved(angles.is_interleaved) {}
  const A* cosine;
  const A* sine;
  int64_t half, positions;
  const int32_t* position_of_row;
  bool is_interleaved;

  /// First of the row's angles.
  [[nodiscard]] int64_t at(int64_t row) const {
    return half * (position_of_row != nullptr ? position_of_row[row] : row % positions);
  }
};

template <typename In, typename Out, typename A>
[[gnu::always_inline]] inline void turn(const In* in, Out* out, const Table<A>& table,
                                        int64_t angle, A direction) {
  const A* c = table.cosine + angle;
  const A* s = table.sine + angle;
  if (table.is_interleaved) {  // with constants, so that the loop is vectorised
    turn_pairs<In, Out, A>(in, out, c, s, table.half, direction, 2, 1);
  } else {
    turn_pairs<In, Out, A>(in, out, c, s, table.half, direction, 1, table.half);
  }
}

template <typename T, typename A>
CIUIC_CPU_CLONES void rotate_rows(T* q, int64_t begin, int64_t end, int64_t heads, int64_t head_dim,
                                  Table<A> table, A direction) {
  const int64_t nope = head_dim - 2 * table.half;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t angle = table.at(row);
    for (int64_t head = 0; head < heads; ++head) {
      T* rope = q + (row * heads + head) * head_dim + nope;
      turn<T, T, A>(rope, rope, table, angle, direction);
    }
  }
}

template <typename T>
void rotate(const at::Tensor& q, const Angles& angles, int direction) {
  using A = Accumulate<T>;
  const Table<A> table(angles);
  T* data = q.mutable_data_ptr<T>();
  const int64_t heads = q.size(1);
  const int64_t head_dim = q.size(2);
  parallel_rows(q.size(0), heads * 2 * table.half, [&](int64_t begin, int64_t end) {
    rotate_rows<T, A>(data, begin, end, heads, head_dim, table, static_cast<A>(direction));
  });
}

// Sizes of the tensors of one call of assemble_keys.
struct KeyShape {
  int64_t heads, nope, kv_dim, latent_stride, rope_offset;
};

template <typename T, typename A>
CIUIC_CPU_CLONES void assemble_rows(const T* kv, const T* latent_rope, T* k, int64_t begin,
                                    int64_t end, KeyShape shape, Table<A> table, T* rope) {
  const int64_t rope_dim = 2 * table.half;
  const int64_t key_dim = shape.nope + rope_dim;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t angle = table.at(row);
    turn<T, T, A>(latent_rope + row * shape.latent_stride + shape.rope_offset, rope, table, angle,
                  A(1));
    for (int64_t head = 0; head < shape.heads; ++head) {
      T* key = k + (row * shape.heads + head) * key_dim;
      std::copy_n(kv + (row * shape.heads + head) * shape.kv_dim, shape.nope, key);
      std::copy_n(rope, rope_dim, key + shape.nope);
    }
  }
}

template <typename T, typename A>
CIUIC_CPU_CLONES void disassemble_rows(const T* dk, T* dkv, T* dlatent_rope, int64_t begin,
                                       int64_t end, KeyShape shape, Table<A> table, A* sum) {
  const int64_t rope_dim = 2 * table.half;
  const int64_t key_dim = shape.nope + rope_dim;
  for (int64_t row = begin; row < end; ++row) {
    std::fill_n(sum, rope_dim, A(0));
    for (int64_t head = 0; head < shape.heads; ++head) {
      const T* key = dk + (row * shape.heads + head) * key_dim;
      std::copy_n(key, shape.nope, dkv + (row * shape.heads + head) * shape.kv_dim);
#pragma omp simd
      for (int64_t i = 0; i < rope_dim; ++i) {
        sum[i] += static_cast<A>(key[shape.nope + i]);
      }
    }
    const int64_t angle = table.at(row);
    turn<A, T, A>(sum, dlatent_rope + row * shape.latent_stride + shape.rope_offset, table, angle,
                  A(-1));
  }
}

KeyShape key_shape(const at::Tensor& kv_NHd, const at::Tensor& latent_rope_NC, int64_t nope_dim,
                   int64_t rope_dim) {
  return {kv_NHd.size(1), nope_dim, kv_NHd.size(2), latent_rope_NC.stride(0),
          latent_rope_NC.size(1) - rope_dim};
}

}  // namespace

void rotate_queries_(const at::Tensor& q_NHd, const Angles& angles) {
  with_dtype(q_NHd.scalar_type(), [&](auto tag) { rotate<decltype(tag)>(q_NHd, angles, 1); });
}

void rotate_queries_backward_(const at::Tensor& dq_NHd, const Angles& angles) {
  with_dtype(dq_NHd.scalar_type(), [&](auto tag) { rotate<decltype(tag)>(dq_NHd, angles, -1); });
}

at::Tensor assemble_keys(const at::Tensor& kv_NHd, const at::Tensor& latent_rope_NC,
                         int64_t nope_dim, const Angles& angles) {
  const int64_t rope_dim = 2 * angles.cosine.size(1);
  const KeyShape shape = key_shape(kv_NHd, latent_rope_NC, nope_dim, rope_dim);
  at::Tensor keys = at::empty({kv_NHd.size(0), shape.heads, nope_dim + rope_dim}, kv_NHd.options());
  with_dtype(keys.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    using A = Accumulate<T>;
    const Table<A> table(angles);
    const T* kv = kv_NHd.const_data_ptr<T>();
    const T* latent_rope = latent_rope_NC.const_data_ptr<T>();
    T* k = keys.mutable_data_ptr<T>();
    parallel_rows(keys.size(0), shape.heads * keys.size(2), [&](int64_t begin, int64_t end) {
      std::vector<T> rope(rope_dim);
      assemble_rows<T, A>(kv, latent_rope, k, begin, end, shape, table, rope.data());
    });
  });
  return keys;
}

void assemble_keys_backward_(const at::Tensor& dkv_NHd, const at::Tensor& dlatent_rope_NC,
                             const at::Tensor& dk_NHd, const Angles& angles) {
  const int64_t rope_dim = 2 * angles.cosine.size(1);
  const KeyShape shape = key_shape(dkv_NHd, dlatent_rope_NC, dk_NHd.size(2) - rope_dim, rope_dim);
  with_dtype(dk_NHd.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    using A = Accumulate<T>;
    const Table<A> table(angles);
    const T* dk = dk_NHd.const_data_ptr<T>();
    T* dkv = dkv_NHd.mutable_data_ptr<T>();
    T* dlatent_rope = dlatent_rope_NC.mutable_data_ptr<T>();
    parallel_rows(dk_NHd.size(0), shape.heads * dk_NHd.size(2), [&](int64_t begin, int64_t end) {
      std::vector<A> sum(rope_dim);
      disassemble_rows<T, A>(dk, dkv, dlatent_rope, begin, end, shape, table, sum.data());
    });
  });
}

}  // namespace ciuic::core::kernels::cpu
