// SPDX-License-Identifier: MIT
//
// One element of a tensor as a double, and back: the plain conversions that fast ones are compared
// with.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include <ciuic/testing/float_format.hpp>
#include <ciuic/view.hpp>

namespace ciuic::testing {

/// bfloat16 is the upper half of a float.
inline float bf16_to_float(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float out = 0;
  std::memcpy(&out, &wide, sizeof(out));
  return out;
}

/// Rounds to nearest, ties to even. NaN stays NaN.
inline uint16_t float_to_bf16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  if (std::isnan(value)) {
    return static_cast<uint16_t>((bits >> 16) | 0x40U);
  }
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

template <typename T>
T read_as(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}
template <typename T>
void write_as(void* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

inline double load_element(ciuic_dtype dtype, const void* at) {
  if (same(dtype, kF32)) {
    return read_as<float>(at);
  }
  if (same(dtype, kF64)) {
    return read_as<double>(at);
  }
  if (same(dtype, kBF16)) {
    return bf16_to_float(read_as<uint16_t>(at));
  }
  if (same(dtype, kI64)) {
    return static_cast<double>(read_as<int64_t>(at));
  }
  if (same(dtype, kI32)) {
    return read_as<int32_t>(at);
  }
  if (same(dtype, kU8)) {
    return read_as<uint8_t>(at);
  }
  if (FloatFormat::knows(dtype)) {
    const uint32_t code = dtype.bits == 8 ? read_as<uint8_t>(at) : read_as<uint16_t>(at);
    return FloatFormat::of(dtype).decode(code);
  }
  throw Error(CIUIC_UNIMPLEMENTED, "the reference host has no " + dtype_name(dtype));
}

inline void store_element(ciuic_dtype dtype, void* at, double value) {
  if (same(dtype, kF32)) {
    write_as(at, static_cast<float>(value));
  } else if (same(dtype, kF64)) {
    write_as(at, value);
  } else if (same(dtype, kBF16)) {
    write_as(at, float_to_bf16(static_cast<float>(value)));
  } else if (same(dtype, kI64)) {
    write_as(at, static_cast<int64_t>(value));
  } else if (same(dtype, kI32)) {
    write_as(at, static_cast<int32_t>(value));
  } else if (same(dtype, kU8)) {
    write_as(at, static_cast<uint8_t>(value));
  } else if (FloatFormat::knows(dtype)) {
    const uint32_t code = FloatFormat::of(dtype).encode(value, false);
    dtype.bits == 8 ? write_as(at, static_cast<uint8_t>(code))
                    : write_as(at, static_cast<uint16_t>(code));
  } else {
    throw Error(CIUIC_UNIMPLEMENTED, "the reference host has no " + dtype_name(dtype));
  }
}

/// Where element `index` (row-major) of a tensor with any strides lies.
inline char* element_at(const ciuic_tensor& t, int64_t index) {
  int64_t offset = 0;
  for (int32_t d = t.t.ndim; d-- > 0;) {
    offset += index % t.t.shape[d] * t.t.strides[d];
    index /= t.t.shape[d];
  }
  return static_cast<char*>(tensor_data(t)) + offset * dtype_bytes(t.t.dtype);
}

/// Row-major index, in the global tensor, of element `index` of the box.
inline int64_t global_index(const ciuic_place& place, int64_t index) {
  int64_t out = 0;
  int64_t stride = 1;
  for (int32_t d = place.ndim; d-- > 0;) {
    out += (place.offset[d] + index % place.box[d]) * stride;
    index /= place.box[d];
    stride *= place.global_shape[d];
  }
  return out;
}

}  // namespace ciuic::testing
