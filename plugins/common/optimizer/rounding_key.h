// SPDX-License-Identifier: MIT
//
// The dice of rounding by chance: a hash of the run's seed, the update, the parameter's name and the
// element's index in it. The same whatever split, thread or rank an element is computed in.
#pragma once

#include <cstdint>
#include <string_view>

namespace ciuic::plugins::optimizer {

/// Sebastiano Vigna's splitmix64.
constexpr uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// Of a parameter in an update.
constexpr uint64_t rounding_key(uint64_t seed, uint64_t update, std::string_view parameter) {
  uint64_t key = mixed(mixed(seed) ^ update);
  for (const char c : parameter) {
    key = mixed(key ^ static_cast<unsigned char>(c));
  }
  return key;
}

/// For the 2^32 elements whose index has this upper half: the lower half goes into the hash of each.
constexpr uint64_t key_of_stretch(uint64_t key, uint64_t upper_half) {
  return upper_half == 0 ? key : mixed(key ^ upper_half);
}

}  // namespace ciuic::plugins::optimizer
