// SPDX-License-Identifier: MIT
#include "tests/model/uniform_values.h"

#include <cmath>

#include <ATen/ops/empty.h>

namespace ciuic::core::testing {
namespace {

uint64_t fnv1a64(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : text) {
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  return h;
}

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

class Bits {
 public:
  Bits(std::string_view name, uint64_t seed) : state_(fnv1a64(name) ^ seed) {}
  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15ull); }

 private:
  uint64_t state_;
};

}  // namespace

at::Tensor uniform_values(std::string_view name, std::vector<int64_t> shape, uint64_t seed) {
  at::Tensor values = at::empty(shape, at::TensorOptions().dtype(at::kDouble));
  Bits bits(name, seed);
  auto* v = values.mutable_data_ptr<double>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    v[i] = static_cast<double>(bits.next() >> 40) * 0x1p-23 - 1.0;
  }
  return values;
}

at::Tensor uniform_tokens(std::string_view name, std::vector<int64_t> shape, int64_t vocab_size,
                          uint64_t seed) {
  at::Tensor tokens = at::empty(shape, at::TensorOptions().dtype(at::kLong));
  Bits bits(name, seed);
  auto* t = tokens.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    t[i] = static_cast<int64_t>(bits.next() % static_cast<uint64_t>(vocab_size));
  }
  return tokens;
}

at::Tensor reference_weight(std::string_view name, std::vector<int64_t> shape, uint64_t seed,
                            double deviation) {
  at::Tensor values = uniform_values(name, std::move(shape), seed);
  if (name.ends_with("e_score_correction_bias")) {
    values.mul_(12.0);
  } else if (name.ends_with(".bias")) {
    values.mul_(0.25);
  } else if (name.ends_with("norm.weight")) {
    values.mul_(0.5).add_(1.0);
  } else {
    values.mul_(std::sqrt(3.0) * deviation);
  }
  return values.to(at::kFloat);
}

}  // namespace ciuic::core::testing
