// SPDX-License-Identifier: MIT
//
// fp32 from narrow floats and back, in the same bits on every vector unit: to nearest even, or to
// bf16 by chance.
//
// Rounding by chance goes to the neighbour above with the probability of the distance from the one
// below, so that the mean of many roundings is the number itself (Stochastic Rounding, Croci et al.,
// 2022). The chance is a hash of a key and of the element's index: the same whatever split, thread
// or rank an element is computed in.
#pragma once

#include <cstdint>
#include <string_view>

namespace ciuic::plugins::optimizer {

enum class NumberFormat { F32, BF16, F16 };

int64_t bytes_of(NumberFormat format);

/// `in` is BF16 or F16.
void widen(NumberFormat format, const void* in, int64_t count, float* out);
/// `out` is BF16 or F16. To nearest even; too large becomes infinite, NaN stays NaN.
void narrow(NumberFormat format, const float* in, int64_t count, void* out);

/// Of one tensor in one update; `tensor` tells those of a parameter apart.
struct RoundingKey {
  uint64_t seed, update;
  std::string_view parameter;
  uint64_t tensor;
};
uint64_t hash_of(const RoundingKey& key);

/// To bf16 by chance. `first` is the index of the first element in its parameter.
void narrow_by_chance(uint64_t key_hash, uint64_t first, const float* in, int64_t count,
                      uint16_t* out);

}  // namespace ciuic::plugins::optimizer
