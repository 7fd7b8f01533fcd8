// SPDX-License-Identifier: MIT
//
// The matrices of a product as a policy is handed them: strided, in fp32, bf16 or fp16, one alone or
// one of a group.
#pragma once

#include <cstdint>
#include <vector>

#include <ciuic/abi/precision.h>
#include <ciuic/view.hpp>

namespace ciuic::plugins::fp8_block {

/// Rows in host memory; elements of a row lie side by side.
struct Matrix {
  char* data = nullptr;
  ciuic_dtype dtype{};
  int64_t rows = 0, columns = 0, row_stride = 0;  // in elements

  [[nodiscard]] char* at(int64_t row) const { return data + row * row_stride * dtype_bytes(dtype); }
  [[nodiscard]] Matrix some_rows(int64_t begin, int64_t end) const {
    return {at(begin), dtype, end - begin, columns, row_stride};
  }
  /// Row `row` as floats; fp32, bf16 or fp16.
  void read(int64_t row, float* out) const;
  /// row = values + beta * row; with beta 0 it is not read. `scratch`: as many floats.
  void write(int64_t row, const float* values, float beta, float* scratch) const;
};

/// Throws INVALID for another number of dimensions or columns apart, UNIMPLEMENTED for other dtypes
/// or memory. `what` names it in messages.
Matrix matrix_of(const ciuic_tensor& tensor, const char* what);
/// Matrix `index` of a tensor with three dimensions.
Matrix matrix_of(const ciuic_tensor& tensor, int64_t index, const char* what);

/// [begin, end) of each group's rows. Throws INVALID unless they follow each other up to `rows`.
struct RowRange {
  int64_t begin, end;
};
std::vector<RowRange> groups_of(const ciuic_tensor& group_ends, int64_t rows);

}  // namespace ciuic::plugins::fp8_block
