// SPDX-License-Identifier: MIT
#include "matrix.h"

#include <algorithm>
#include <string>

#include <ciuic/error.hpp>

#include "precision/tile_rounding.h"

namespace ciuic::plugins::fp8_block {
namespace {

const ciuic_dtype kCodes{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1};

void check(const ciuic_tensor& tensor, int32_t dims, const char* what) {
  const ciuic_dl& t = tensor.t;
  if (t.device.type != CIUIC_DEVICE_CPU) {
    throw Error(CIUIC_UNIMPLEMENTED, std::string(what) + " is not in host memory");
  }
  if (t.ndim != dims) {
    throw Error(CIUIC_INVALID, std::string(what) + " has " + std::to_string(t.ndim) +
                                   " dimensions, expected " + std::to_string(dims));
  }
  const bool is_known =
      same(t.dtype, kF32) || same(t.dtype, kBF16) || same(t.dtype, kF16) || same(t.dtype, kCodes);
  if (!is_known) {
    throw Error(CIUIC_UNIMPLEMENTED, std::string(what) + " is " + dtype_name(t.dtype) +
                                         ", expected f32, bf16, f16 or f8_e4m3fn");
  }
  if (t.shape[dims - 1] > 1 && t.strides[dims - 1] != 1) {
    throw Error(CIUIC_INVALID, std::string(what) + ": elements of a row lie " +
                                   std::to_string(t.strides[dims - 1]) + " apart, expected 1");
  }
}

}  // namespace

Matrix matrix_of(const ciuic_tensor& tensor, const char* what) {
  check(tensor, 2, what);
  return {static_cast<char*>(tensor_data(tensor)), tensor.t.dtype, tensor.t.shape[0],
          tensor.t.shape[1], tensor.t.strides[0]};
}

Matrix matrix_of(const ciuic_tensor& tensor, int64_t index, const char* what) {
  check(tensor, 3, what);
  char* data = static_cast<char*>(tensor_data(tensor)) +
               index * tensor.t.strides[0] * dtype_bytes(tensor.t.dtype);
  return {data, tensor.t.dtype, tensor.t.shape[1], tensor.t.shape[2], tensor.t.strides[1]};
}

void Matrix::read(int64_t row, float* out) const {
  const char* in = at(row);
  if (same(dtype, kF32)) {
    std::copy_n(reinterpret_cast<const float*>(in), columns, out);
  } else if (same(dtype, kBF16)) {
    precision::widen_bf16(columns, reinterpret_cast<const uint16_t*>(in), out);
  } else if (same(dtype, kF16)) {
    precision::widen_f16(columns, reinterpret_cast<const uint16_t*>(in), out);
  } else {
    precision::decode_e4m3(columns, reinterpret_cast<const uint8_t*>(in), out);
  }
}

void Matrix::write(int64_t row, const float* values, float beta, float* scratch) const {
  if (beta != 0) {
    read(row, scratch);
    for (int64_t i = 0; i < columns; ++i) {
      scratch[i] = values[i] + beta * scratch[i];
    }
    values = scratch;
  }
  char* out = at(row);
  if (same(dtype, kF32)) {
    std::copy_n(values, columns, reinterpret_cast<float*>(out));
  } else if (same(dtype, kBF16)) {
    precision::narrow_to_bf16(columns, values, reinterpret_cast<uint16_t*>(out));
  } else {
    precision::narrow_to_f16(columns, values, reinterpret_cast<uint16_t*>(out));
  }
}

std::vector<RowRange> groups_of(const ciuic_tensor& group_ends, int64_t rows) {
  const auto* ends = elements<int64_t>(group_ends);
  std::vector<RowRange> groups;
  int64_t begin = 0;
  for (int64_t g = 0; g < num_elements(group_ends); ++g) {
    if (ends[g] < begin || ends[g] > rows) {
      throw Error(CIUIC_INVALID, "group_ends[" + std::to_string(g) + "] is " +
                                     std::to_string(ends[g]) + ", expected " +
                                     std::to_string(begin) + " to " + std::to_string(rows));
    }
    groups.push_back({begin, ends[g]});
    begin = ends[g];
  }
  if (begin != rows) {
    throw Error(CIUIC_INVALID, "group_ends end at row " + std::to_string(begin) + ", expected " +
                                   std::to_string(rows));
  }
  return groups;
}

}  // namespace ciuic::plugins::fp8_block
