// SPDX-License-Identifier: MIT
//
// Which token comes next, given logits. The order is that of transformers: temperature, then top_k,
// then top_p (nucleus sampling, arXiv:1904.09751, section 3.1). The same seed and logits give the
// same tokens on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace ciuic::core {

struct Sampling {
  double temperature = 0.8;  // 0: always the most likely token
  int64_t top_k = 0;         // 0: any
  double top_p = 1;          // the fewest tokens that have this probability together
};

class Sampler final {
 public:
  /// `candidates`: the tokens that may be chosen, at least one.
  Sampler(std::vector<int64_t> candidates, uint64_t seed)
      : candidates_(std::move(candidates)), random_(seed) {}

  /// Equal logits: the smaller token is the more likely one.
  /// Throws: Failure (Numbers) where no candidate's logit is a number.
  int64_t pick(std::span<const float> logits, const Sampling& sampling);

 private:
  std::vector<int64_t> candidates_;
  std::mt19937_64 random_;
};

}  // namespace ciuic::core
