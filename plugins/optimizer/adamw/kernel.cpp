// SPDX-License-Identifier: MIT
//
// Loops for the compiler to vectorise; one copy per vector width, chosen when the library is
// loaded.
#include "kernel.h"

#include <bit>
#include <cmath>

// Sanitizers run before the resolvers that choose a copy: they get the plain one.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CIUIC_CLONES_FOR(...) __attribute__((target_clones(__VA_ARGS__, "default")))
#else
#define CIUIC_CLONES_FOR(...)
#endif

namespace ciuic::plugins::adamw {

// Decoupled Weight Decay Regularization (arXiv:1711.05101), algorithm 2, in the order of operations
// of torch.optim.AdamW:
//   p *= 1 - lr wd;  m = lerp(m, g, 1 - beta1);  v = beta2 v + (1 - beta2) g g
//   p -= lr / (1 - beta1^t)  m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
CIUIC_CLONES_FOR("avx512f", "avx2")
void update(const Scalars& s, int64_t count, const float* __restrict grad, float* __restrict value,
            float* __restrict exp_avg, float* __restrict exp_avg_sq) {
  const Scalars c = s;
  // torch's lerp starts from the nearer end.
  const bool from_start = c.one_minus_beta1 < 0.5F;
  const float toward = from_start ? c.one_minus_beta1 : 1.0F - c.one_minus_beta1;
  for (int64_t i = 0; i < count; ++i) {
    const float g = grad[i] * c.grad_scale;
    const float m0 = exp_avg[i];
    const float m = from_start ? m0 + toward * (g - m0) : g - toward * (g - m0);
    const float v = exp_avg_sq[i] * c.beta2 + c.one_minus_beta2 * g * g;
    const float denominator = std::sqrt(v) / c.correction2 + c.epsilon;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    value[i] = value[i] * c.decay + c.step_size * m / denominator;
  }
}

CIUIC_CLONES_FOR("avx2")  // avx512f alone has no 16-bit lanes
void to_bf16(int64_t count, const float* __restrict in, uint16_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(in[i]);
    const uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40U;
    out[i] = static_cast<uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? quiet : rounded);
  }
}

CIUIC_CLONES_FOR("avx2")
void from_bf16(int64_t count, const uint16_t* __restrict in, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = std::bit_cast<float>(uint32_t{in[i]} << 16);
  }
}

}  // namespace ciuic::plugins::adamw
