// SPDX-License-Identifier: MIT
//
// Loops over many numbers: widen, find the largest, divide by a scale and round to a format, and
// E4M3 codes. Each gives the bits of number_format.h.
//
// Numbers of a format stand as floats here: a product can take them as they are. Magnitudes are
// compared as bit patterns, whose order is that of the numbers, with infinity and NaN on top.
#pragma once

#include <cstdint>

namespace ciuic::plugins::precision {

void widen_bf16(int64_t count, const uint16_t* in, float* out);
void widen_f16(int64_t count, const uint16_t* in, float* out);
/// Past the largest number comes infinity.
void narrow_to_bf16(int64_t count, const float* in, uint16_t* out);
void narrow_to_f16(int64_t count, const float* in, uint16_t* out);

/// The bits of the largest magnitude of `count` numbers.
uint32_t largest_bits(int64_t count, const float* x);
/// largest[i] = max(largest[i], bits of |x[i]|)
void raise_to_largest(int64_t count, const float* x, uint32_t* largest);

/// x[i] = x[i] / scale, rounded to E4M3. |x[i] / scale| is 448 at most, but for a rounding error;
/// NaN stays, and infinity, whose code is NaN.
void round_to_e4m3(int64_t count, float scale, float* x);
/// The same with a scale for each number.
void round_to_e4m3(int64_t count, const float* scales, float* x);
/// x[i] = round(x[i] / scale) * scale in E5M6, of a scale that is a power of two.
void through_e5m6(int64_t count, float scale, float* x);
/// x[i] = round(x[i] / scale) * scale in E4M3.
void through_e4m3(int64_t count, float scale, float* x);

/// Codes of numbers that are E4M3's, and back.
void encode_e4m3(int64_t count, const float* x, uint8_t* codes);
void decode_e4m3(int64_t count, const uint8_t* codes, float* x);

}  // namespace ciuic::plugins::precision
