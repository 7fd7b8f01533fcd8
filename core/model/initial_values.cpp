// SPDX-License-Identifier: MIT
// Counter-based normal values: pair i of a parameter is Box-Muller of splitmix64(key + i), key =
// xxh64(name, seed).
//
// Only +, -, *, / and sqrt in IEEE single precision, no fused multiply-add (the build has no
// -ffast-math, and this file is compiled for the base instruction set): the same bits on every
// processor. Reads like a vector loop on purpose.
//
// Sources: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014), for the
// mixer; Box and Muller, "A note on the generation of random normal deviates" (1958).
#include "core/model/initial_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <xxhash.h>

namespace ciuic::core {
namespace {

constexpr int64_t kPairsPerBlock = 128;

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Natural logarithm of (bits + 0.5) / 2^24 for bits < 2^24: m * 2^e with m in [sqrt(1/2), sqrt(2)),
// then the series of atanh((m - 1) / (m + 1)). Good to a few units in the last place, which is
// plenty here.
float log_of_uniform(uint32_t bits24) {
  const float u = (static_cast<float>(bits24) + 0.5f) * 0x1p-24f;
  const uint32_t raw = std::bit_cast<uint32_t>(u);
  const uint32_t shifted = raw - 0x3f3504f3u;  // so that the mantissa's range begins at sqrt(1/2)
  const auto exponent = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
  const float m = std::bit_cast<float>((shifted & 0x007fffffu) + 0x3f3504f3u);
  const float s = (m - 1.0f) / (m + 1.0f);
  const float s2 = s * s;
  const float series =
      2.0f + s2 * (0.6666666667f + s2 * (0.4f + s2 * (0.2857142857f + s2 * 0.2222222222f)));
  return exponent * 0.6931471806f + s * series;
}

// sin and cos of x in [-pi/4, pi/4], by their Taylor series.
float sine_core(float x) {
  const float x2 = x * x;
  return x * (1.0f + x2 * (-1.6666667e-1f +
                           x2 * (8.3333333e-3f + x2 * (-1.9841270e-4f + x2 * 2.7557319e-6f))));
}
float cosine_core(float x) {
  const float x2 = x * x;
  return 1.0f + x2 * (-0.5f + x2 * (4.1666667e-2f + x2 * (-1.3888889e-3f + x2 * 2.4801587e-5f)));
}

void fill_block(uint64_t key, uint64_t first_pair, float deviation, float* even, float* odd) {
  for (int64_t i = 0; i < kPairsPerBlock; ++i) {
    const uint64_t random = mix(key + first_pair + static_cast<uint64_t>(i));
    const float radius =
        deviation * std::sqrt(-2.0f * log_of_uniform(static_cast<uint32_t>(random >> 40)));
    // The angle is a quarter turn (2 bits), and a rest in [-pi/4, pi/4).
    const auto turn = static_cast<uint32_t>(random);
    const auto rest =
        static_cast<float>(static_cast<int32_t>(turn << 2) >> 8) * (1.5707963268f * 0x1p-24f);
    const uint32_t quarter = turn >> 30;
    const float s = sine_core(rest);
    const float c = cosine_core(rest);
    const bool swaps = (quarter & 1u) != 0;
    const float x = swaps ? s : c;
    const float y = swaps ? c : s;
    even[i] = (quarter == 1 || quarter == 2) ? -radius * x : radius * x;
    odd[i] = quarter >= 2 ? -radius * y : radius * y;
  }
}

}  // namespace

void fill_initial_values(const ParameterSpec& parameter, double standard_deviation, uint64_t seed,
                         int64_t begin, std::span<float> out) {
  if (parameter.init != Init::Normal) {
    std::fill(out.begin(), out.end(), parameter.init == Init::Ones ? 1.0f : 0.0f);
    return;
  }
  const uint64_t key = XXH64(parameter.name.data(), parameter.name.size(), seed);
  const auto deviation = static_cast<float>(standard_deviation);
  const int64_t end = begin + static_cast<int64_t>(out.size());
  std::array<float, kPairsPerBlock> even{};
  std::array<float, kPairsPerBlock> odd{};
  constexpr int64_t kBlock = 2 * kPairsPerBlock;
  for (int64_t block = begin / kBlock * kBlock; block < end; block += kBlock) {
    fill_block(key, static_cast<uint64_t>(block / 2), deviation, even.data(), odd.data());
    const int64_t last = std::min(block + kBlock, end);
    for (int64_t i = std::max(block, begin); i < last; ++i) {
      const int64_t pair = (i - block) / 2;
      out[static_cast<size_t>(i - begin)] = (i - block) % 2 == 0 ? even[pair] : odd[pair];
    }
  }
}

}  // namespace ciuic::core
