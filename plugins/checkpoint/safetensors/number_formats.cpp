// SPDX-License-Identifier: MIT
#include "number_formats.h"

#include <cmath>
#include <cstring>

namespace ciuic::plugins::safetensors {
namespace {

uint32_t bits_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float float_of(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Drops the lowest `count` bits, to nearest, ties to even.
uint32_t round_off(uint32_t bits, unsigned count) {
  const uint32_t half = (uint32_t{1} << (count - 1)) - 1;
  return (bits + half + ((bits >> count) & 1U)) >> count;
}

}  // namespace

uint8_t to_e4m3(float value) {
  constexpr uint32_t kInfinity = 0x7f800000U;
  constexpr uint32_t kSmallestNormal = (127U - 6U) << 23;  // 2^-6
  const uint32_t bits = bits_of(value);
  const uint32_t magnitude = bits & 0x7fffffffU;
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80U);
  if (magnitude > kInfinity) {
    return sign | 0x7fU;
  }
  if (magnitude < kSmallestNormal) {
    // Steps of 2^-9: an addition of 2^14 leaves exactly these bits of the mantissa.
    const float shifted = float_of(magnitude) + 16384.0F;
    return sign | static_cast<uint8_t>(bits_of(shifted) - bits_of(16384.0F));
  }
  // 3 of 23 mantissa bits stay; a carry goes into the exponent, as it should.
  const uint32_t code = round_off(magnitude, 20) - ((127U - 7U) << 3);
  return sign | static_cast<uint8_t>(code > 0x7eU ? 0x7eU : code);
}

float from_bf16(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

uint16_t to_bf16(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return static_cast<uint16_t>((bits >> 16) | 0x40U);  // quiet, and not infinity by cutting
  }
  return static_cast<uint16_t>(round_off(bits, 16));
}

float from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 31U;
  const uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 31) {
    return float_of(sign | 0x7f800000U | (mantissa << 13));
  }
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return float_of(sign | ((exponent + 112U) << 23) | (mantissa << 13));
}

}  // namespace ciuic::plugins::safetensors
