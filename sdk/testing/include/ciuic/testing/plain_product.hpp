// SPDX-License-Identifier: MIT
//
// out = alpha * op(a) op(b) + beta * out as three loops in double, any strides, also in groups: what
// a policy's gemm is compared with, and the reference host's product.
//
// Groups: the rows of a group end at group_ends[g]. With two-dimensional a and three-dimensional b
// each group of rows of a, and of out, meets a matrix of b. With three-dimensional out each group of
// rows of a (transposed) and of b makes a matrix of out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ciuic/abi/precision.h>
#include <ciuic/testing/numbers.hpp>

namespace ciuic::testing {

/// A matrix anywhere: read and written by row and column.
class MatrixView {
 public:
  MatrixView(const ciuic_tensor& t, bool transposed, int64_t first_element, int64_t rows)
      : dtype_(t.t.dtype),
        data_(static_cast<char*>(tensor_data(t)) + first_element * dtype_bytes(t.t.dtype)),
        rows_(transposed ? columns_of(t) : rows),
        columns_(transposed ? rows : columns_of(t)),
        row_stride_(t.t.strides[t.t.ndim - (transposed ? 1 : 2)]),
        column_stride_(t.t.strides[t.t.ndim - (transposed ? 2 : 1)]) {}

  [[nodiscard]] int64_t rows() const { return rows_; }
  [[nodiscard]] int64_t columns() const { return columns_; }
  [[nodiscard]] double at(int64_t r, int64_t c) const {
    return load_element(dtype_, address(r, c));
  }
  void set(int64_t r, int64_t c, double value) const {
    store_element(dtype_, address(r, c), value);
  }

 private:
  static int64_t columns_of(const ciuic_tensor& t) { return t.t.shape[t.t.ndim - 1]; }
  [[nodiscard]] char* address(int64_t r, int64_t c) const {
    return data_ + (r * row_stride_ + c * column_stride_) * dtype_bytes(dtype_);
  }

  ciuic_dtype dtype_;
  char* data_;
  int64_t rows_;
  int64_t columns_;
  int64_t row_stride_;
  int64_t column_stride_;
};

/// One product of a, b and out.
struct MatrixProduct {
  MatrixView a, b, out;
};

/// The products that a request comes to; one without groups. Throws INVALID when shapes do not fit.
inline std::vector<MatrixProduct> products_of(const ciuic_gemm& gemm) {
  const bool trans_a = (gemm.flags & CIUIC_GEMM_TRANS_A) != 0;
  const bool trans_b = (gemm.flags & CIUIC_GEMM_TRANS_B) != 0;
  const auto whole = [](const ciuic_tensor& t, bool transposed) {
    return MatrixView(t, transposed, 0, t.t.shape[t.t.ndim - 2]);
  };
  const auto rows_from = [](const ciuic_tensor& t, bool transposed, int64_t begin, int64_t end) {
    return MatrixView(t, transposed, begin * t.t.strides[t.t.ndim - 2], end - begin);
  };
  const auto matrix = [](const ciuic_tensor& t, bool transposed, int64_t group) {
    return MatrixView(t, transposed, group * t.t.strides[0], t.t.shape[1]);
  };
  std::vector<MatrixProduct> out;
  if (gemm.group_ends == nullptr) {
    out.push_back({whole(*gemm.a, trans_a), whole(*gemm.b, trans_b), whole(*gemm.out, false)});
  } else {
    const bool weights = gemm.out->t.ndim == 3;
    int64_t begin = 0;
    for (int64_t g = 0; g < gemm.group_ends->t.shape[0]; ++g) {
      const auto end = static_cast<int64_t>(
          load_element(gemm.group_ends->t.dtype, element_at(*gemm.group_ends, g)));
      out.push_back(
          {rows_from(*gemm.a, trans_a, begin, end),
           weights ? rows_from(*gemm.b, trans_b, begin, end) : matrix(*gemm.b, trans_b, g),
           weights ? matrix(*gemm.out, false, g) : rows_from(*gemm.out, false, begin, end)});
      begin = end;
    }
  }
  for (const MatrixProduct& p : out) {
    if (p.a.columns() != p.b.rows() || p.a.rows() != p.out.rows() ||
        p.b.columns() != p.out.columns()) {
      throw Error(CIUIC_INVALID, "the shapes of a, b and out do not make a product");
    }
  }
  return out;
}

/// With beta 0, out is not read.
inline void plain_product(const ciuic_gemm& gemm) {
  for (const MatrixProduct& p : products_of(gemm)) {
    for (int64_t i = 0; i < p.out.rows(); ++i) {
      for (int64_t j = 0; j < p.out.columns(); ++j) {
        double sum = 0;
        for (int64_t k = 0; k < p.a.columns(); ++k) {
          sum += p.a.at(i, k) * p.b.at(k, j);
        }
        const double before = gemm.beta == 0 ? 0 : gemm.beta * p.out.at(i, j);
        p.out.set(i, j, gemm.alpha * sum + before);
      }
    }
  }
}

}  // namespace ciuic::testing
