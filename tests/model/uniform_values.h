// SPDX-License-Identifier: MIT
#pragma once

// Weights and tokens from a rule that Python shares (tests/reference/random_models.py has it): the
// same bits on both sides without a file between them.
//
// Element i of the tensor `name` is uniform in [-1, 1): with key = fnv1a64(name) ^ seed and z =
// splitmix64's mix of key + (i + 1) * 0x9e3779b97f4a7c15, it is (z >> 40) * 2^-23 - 1.

#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace ciuic::core::testing {

/// f64.
at::Tensor uniform_values(std::string_view name, std::vector<int64_t> shape, uint64_t seed);

/// int64 in [0, vocab_size).
at::Tensor uniform_tokens(std::string_view name, std::vector<int64_t> shape, int64_t vocab_size,
                          uint64_t seed);

/// What the reference puts into the tensor `name` of a Hugging Face folder: f32. `deviation`: of
/// matrices.
at::Tensor reference_weight(std::string_view name, std::vector<int64_t> shape, uint64_t seed,
                            double deviation);

}  // namespace ciuic::core::testing
