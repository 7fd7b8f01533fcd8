// SPDX-License-Identifier: MIT
//
// A small network with its backward written by hand, for tests of sharding: two tanh layers whose
// first matrix is also the head's, and the parameters that go wrong elsewhere: tied, frozen, a
// scalar, an empty one, one without a gradient, and sizes that no world size divides.
//
//   unit 0   a0 = E x + b0 + f        h0 = tanh(a0)       E [6,5]  b0 [6]  f [6] frozen
//   unit 1   a1 = W h0 + b1           h1 = tanh(a1)       W [6,6]  b1 [6]  none [0,3]  unused [2,2]
//   unit 2   y = s E^T h1             loss |y - t|^2 / 2  head = E  s []
//
// With a grid, each sample's contribution is rounded to a multiple of it. Every partial sum is then
// exact in float, so that all orders of reduction give the same bits.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>

#include <ciuic/testing/model_plan.hpp>

namespace ciuic::testing {

class TwoLayerNet {
 public:
  enum Param : uint64_t {
    kEmbed,
    kBias0,
    kFrozen,
    kWeight1,
    kBias1,
    kEmpty,
    kUnused,
    kHead,
    kScale
  };
  static constexpr int64_t kIn = 5;
  static constexpr int64_t kHidden = 6;
  static constexpr uint32_t kUnits = 3;
  static constexpr double kGrid = 1.0 / (1 << 14);

  explicit TwoLayerNet(uint64_t seed, double grid = kGrid) : seed_(seed), grid_(grid) {}

  static Model model() {
    ModelParam head{"head.weight", {kHidden, kIn}, 2};
    head.tied_to = kEmbed;
    ModelParam frozen{"layers.0.offset", {kHidden}, 0};
    frozen.flags = CIUIC_PARAM_FROZEN;
    return {{"embed.weight", {kHidden, kIn}, 0},
            {"layers.0.bias", {kHidden}, 0},
            frozen,
            {"layers.1.weight", {kHidden, kHidden}, 1},
            {"layers.1.bias", {kHidden}, 1},
            {"layers.1.none", {0, 3}, 1},
            {"layers.1.unused", {2, 2}, 1},
            head,
            {"head.scale", {}, 2}};
  }

  using Read = std::function<double(uint64_t param, int64_t i)>;
  using Add = std::function<void(uint64_t param, int64_t i, double gradient)>;

  /// What one sample leaves between its passes.
  struct Tape {
    std::array<double, kIn> x{}, target{}, u{}, y{};
    std::array<double, kHidden> h0{}, h1{}, d{};
  };

  [[nodiscard]] Tape sample(uint64_t step, uint64_t index) const {
    Tape t;
    for (size_t i = 0; i < kIn; ++i) {
      t.x[i] = uniform(step, index, 2 * i);
      t.target[i] = uniform(step, index, 2 * i + 1);
    }
    return t;
  }

  static void forward(uint32_t unit, const Read& w, Tape& t) {
    if (unit == 0) {
      for (int64_t j = 0; j < kHidden; ++j) {
        double a = w(kBias0, j) + w(kFrozen, j);
        for (int64_t i = 0; i < kIn; ++i) {
          a += w(kEmbed, j * kIn + i) * t.x[at(i)];
        }
        t.h0[at(j)] = std::tanh(a);
      }
    } else if (unit == 1) {
      for (int64_t j = 0; j < kHidden; ++j) {
        double a = w(kBias1, j);
        for (int64_t i = 0; i < kHidden; ++i) {
          a += w(kWeight1, j * kHidden + i) * t.h0[at(i)];
        }
        t.h1[at(j)] = std::tanh(a);
      }
    } else {
      for (int64_t i = 0; i < kIn; ++i) {
        t.u[at(i)] = 0;
        for (int64_t j = 0; j < kHidden; ++j) {
          t.u[at(i)] += w(kHead, j * kIn + i) * t.h1[at(j)];
        }
        t.y[at(i)] = w(kScale, 0) * t.u[at(i)];
      }
    }
  }

  void backward(uint32_t unit, const Read& w, Tape& t, const Add& add) const {
    if (unit == 2) {
      backward_head(w, t, add);
    } else if (unit == 1) {
      backward_second(w, t, add);
    } else {
      for (int64_t j = 0; j < kHidden; ++j) {
        const double da = t.d[at(j)] * (1 - t.h0[at(j)] * t.h0[at(j)]);
        add(kBias0, j, snap(da));
        for (int64_t i = 0; i < kIn; ++i) {
          add(kEmbed, j * kIn + i, snap(da * t.x[at(i)]));
        }
      }
    }
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }

  void backward_head(const Read& w, Tape& t, const Add& add) const {
    double ds = 0;
    t.d.fill(0);
    for (int64_t i = 0; i < kIn; ++i) {
      const double dy = t.y[at(i)] - t.target[at(i)];
      ds += dy * t.u[at(i)];
      for (int64_t j = 0; j < kHidden; ++j) {
        add(kHead, j * kIn + i, snap(w(kScale, 0) * t.h1[at(j)] * dy));
        t.d[at(j)] += w(kScale, 0) * w(kHead, j * kIn + i) * dy;
      }
    }
    add(kScale, 0, snap(ds));
  }
  void backward_second(const Read& w, Tape& t, const Add& add) const {
    std::array<double, kHidden> dh0{};
    for (int64_t j = 0; j < kHidden; ++j) {
      const double da = t.d[at(j)] * (1 - t.h1[at(j)] * t.h1[at(j)]);
      add(kBias1, j, snap(da));
      for (int64_t i = 0; i < kHidden; ++i) {
        add(kWeight1, j * kHidden + i, snap(da * t.h0[at(i)]));
        dh0[at(i)] += w(kWeight1, j * kHidden + i) * da;
      }
    }
    t.d = dh0;
  }

  /// In [-1, 1), from the seed alone.
  [[nodiscard]] double uniform(uint64_t step, uint64_t index, uint64_t i) const {
    uint64_t x = seed_ + step * 0x9E3779B97F4A7C15U + index * 0xBF58476D1CE4E5B9U + i + 1;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    x ^= x >> 31;
    return static_cast<double>(x >> 11) / static_cast<double>(uint64_t{1} << 52) - 1;
  }
  [[nodiscard]] double snap(double g) const {
    return grid_ == 0 ? g : std::floor(g / grid_ + 0.5) * grid_;
  }

  uint64_t seed_;
  double grid_;
};

}  // namespace ciuic::testing
