// SPDX-License-Identifier: MIT
#include "plain_rules.h"

#include <algorithm>
#include <cstring>

namespace ciuic::mutants {

PlainAdamW::PlainAdamW(const Context& context, Fault fault, ciuic_dtype moment)
    : Optimizer(context),
      fault_(fault),
      beta1_(static_cast<float>(context.options().f64("beta1"))),
      beta2_(static_cast<float>(context.options().f64("beta2"))),
      epsilon_(static_cast<float>(context.options().f64("epsilon"))),
      weight_decay_(context.options().f64("weight_decay")),
      specs_{moment_spec("mean", moment), moment_spec("square", moment)} {}

void PlainAdamW::update(ArrayView<ciuic_update> updates, const ciuic_stream*) const {
  for (const ciuic_update& u : updates) {
    apply(u);
  }
}

PlainAdamW::Scalars PlainAdamW::scalars_of(const ciuic_update& u) const {
  const auto t = static_cast<double>(u.update);
  const double lr = u.lr * (is(Fault::kAppliesLrScaleAgain) ? u.param->lr_scale : 1);
  const double decay = weight_decay_ * (is(Fault::kIgnoresDecayFactor) ? 1 : u.weight_decay);
  const bool corrects = !is(Fault::kNoBiasCorrection);
  Scalars s{};
  s.step_size = static_cast<float>(corrects ? lr / (1 - std::pow(double{beta1_}, t)) : lr);
  s.correction2 = static_cast<float>(corrects ? std::sqrt(1 - std::pow(double{beta2_}, t)) : 1);
  s.decay = static_cast<float>(is(Fault::kDecayCoupled) ? 1 : 1 - lr * decay);
  s.coupled = static_cast<float>(is(Fault::kDecayCoupled) ? decay : 0);
  return s;
}

float PlainAdamW::element(const Scalars& s, float value, float grad, float& mean,
                          float& square) const {
  const float g = grad + s.coupled * value;
  mean = beta1_ * mean + (1 - beta1_) * g;
  square = beta2_ * square + (1 - beta2_) * g * g;
  const float denominator = is(Fault::kEpsilonInsideRoot)
                                ? std::sqrt(square / (s.correction2 * s.correction2) + epsilon_)
                                : std::sqrt(square) / s.correction2 + epsilon_;
  return value * s.decay - s.step_size * mean / denominator;
}

/// bf16 with 16 random bits added below those that stay.
uint16_t PlainAdamW::by_chance(const ciuic_update& u, int64_t i, float master) const {
  const auto index = static_cast<uint64_t>(is(Fault::kRoundsByPlace) ? i : u.begin + i);
  uint64_t x = (u.seed * 1'000'003 + u.update) * 0x9E3779B97F4A7C15U + index;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  uint32_t bits = 0;
  std::memcpy(&bits, &master, sizeof(bits));
  const uint32_t reach = is(Fault::kRoundsFar) ? 0x3FFFF : 0xFFFF;
  return static_cast<uint16_t>((bits + (static_cast<uint32_t>(x >> 32) & reach)) >> 16);
}

void PlainAdamW::store_copy(const ciuic_update& u, int64_t i, float master) const {
  if (u.master == nullptr || is(Fault::kForgetsCopy)) {
    return;
  }
  if (is(Fault::kTruncatesCopy) && same(u.value->t.dtype, kBF16)) {
    uint32_t bits = 0;
    std::memcpy(&bits, &master, sizeof(bits));
    testing::write_as(testing::element_at(*u.value, i), static_cast<uint16_t>(bits >> 16));
    return;
  }
  const bool has_chance =
      is(Fault::kRoundsBySeed) || is(Fault::kRoundsByPlace) || is(Fault::kRoundsFar);
  if (has_chance && std::isfinite(master) && same(u.value->t.dtype, kBF16)) {
    testing::write_as(testing::element_at(*u.value, i), by_chance(u, i, master));
    return;
  }
  write_at(*u.value, i, master);
}

void PlainAdamW::apply(const ciuic_update& u) const {
  const Scalars s = scalars_of(u);
  std::vector<float> copy(is(Fault::kCopiesTensors) ? static_cast<size_t>(u.num_elements) : 0,
                          1.0F);
  if (is(Fault::kKeepsOwnState)) {
    own_mean_.resize(std::max(own_mean_.size(), static_cast<size_t>(u.begin + u.num_elements)));
  }
  bool has_nan = false;
  for (int64_t i = 0; i < u.num_elements; ++i) {
    const auto scale = static_cast<float>(is(Fault::kIgnoresGradScale) ? 1 : u.grad_scale);
    float grad = read_at(*u.grad, i) * scale;
    if (is(Fault::kDependsOnRange) && i == u.num_elements - 1) {
      grad = 0;  // the last one of a range, as a loop over pairs may do
    }
    has_nan = has_nan || std::isnan(grad);
    if (is(Fault::kSpreadsNan) && has_nan) {
      grad = std::nanf("");
    }
    float mean = is(Fault::kKeepsOwnState) ? own_mean_[static_cast<size_t>(u.begin + i)]
                                           : read_at(*u.state[0], i);
    float square = read_at(*u.state[1], i);
    const float value = element(s, read_at(master_of(u), i), grad, mean, square);
    write_at(*u.state[0], i, mean);
    write_at(*u.state[1], i, square);
    write_at(master_of(u), i, value);
    store_copy(u, i, value);
    if (is(Fault::kKeepsOwnState)) {
      own_mean_[static_cast<size_t>(u.begin + i)] = mean;
    }
    if (is(Fault::kWritesGradient)) {
      write_at(*u.grad, i, grad);
    }
  }
  if (is(Fault::kWritesPastEnd) && u.num_elements > 0 && u.num_elements % 8 != 0) {
    char* past = testing::element_at(*u.state[1], u.num_elements - 1);
    std::memset(past + dtype_bytes(u.state[1]->t.dtype), 0, 1);  // the tail of a vector store
  }
}

void PlainSgd::update(ArrayView<ciuic_update> updates, const ciuic_stream*) const {
  for (const ciuic_update& u : updates) {
    const auto decay = static_cast<float>(weight_decay_ * u.weight_decay);
    const auto lr = static_cast<float>(u.lr);
    for (int64_t i = 0; i < u.num_elements; ++i) {
      const float value = read_at(master_of(u), i);
      const float g = read_at(*u.grad, i) * static_cast<float>(u.grad_scale) + decay * value;
      write_at(master_of(u), i, value - lr * g);
      if (u.master != nullptr) {
        write_at(*u.value, i, value - lr * g);
      }
    }
  }
}

void MatrixRule::update(ArrayView<ciuic_update> updates, const ciuic_stream*) const {
  for (const ciuic_update& u : updates) {
    const bool is_matrix = u.param->ndim == 2;
    double squares = 0;
    for (int64_t i = 0; i < u.num_elements; ++i) {
      squares += std::pow(read_at(*u.grad, i), 2);
    }
    const double size = u.lr * (is_matrix ? 1 / (std::sqrt(squares) + 1e-9) : u.grad_scale);
    for (int64_t i = 0; i < u.num_elements; ++i) {
      const float value = read_at(master_of(u), i) - static_cast<float>(size) * read_at(*u.grad, i);
      write_at(master_of(u), i, value);
      if (u.master != nullptr && !(is_matrix && forgets_copy_)) {
        write_at(*u.value, i, value);
      }
    }
  }
}

void BlockRule::update(ArrayView<ciuic_update> updates, const ciuic_stream*) const {
  for (const ciuic_update& u : updates) {
    for (int64_t b = 0; b * kBlock < u.num_elements; ++b) {
      const int64_t first = b * kBlock;
      const int64_t last = std::min(first + kBlock, u.num_elements);
      const auto scale = static_cast<float>(u.grad_scale);
      float squares = 0;
      for (int64_t i = first; i < last; ++i) {
        const float g = read_at(*u.grad, i) * scale;
        squares += g * g;
      }
      const float sum = read_at(*u.state[0], b) + squares / static_cast<float>(last - first);
      write_at(*u.state[0], b, sum);
      for (int64_t i = first; i < last; ++i) {
        const float delta = static_cast<float>(u.lr) * read_at(*u.grad, i) * scale / std::sqrt(sum);
        const float value = read_at(master_of(u), i) - delta;
        write_at(master_of(u), i, value);
        if (u.master != nullptr) {
          write_at(*u.value, i, value);
        }
      }
    }
  }
}

}  // namespace ciuic::mutants
