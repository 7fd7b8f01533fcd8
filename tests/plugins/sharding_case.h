// SPDX-License-Identifier: MIT
//
// A short training under one strategy: what the matrix, the field bugs and any_world compare. Ranks are
// threads; gradients are functions of (step, slot, parameter, element), so that any strategy at any
// world size is handed the same numbers.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sharding_driver.h"

namespace ciuic::testing {

/// Odd sizes, a scalar, an empty, a frozen and a tied parameter, one that no use ever reaches; five
/// units. `value` is the type of matrices, whose masters stay fp32.
inline std::vector<ParamSpec> odd_model(ciuic_dtype value = kF32) {
  constexpr uint32_t kNorm = CIUIC_PARAM_IN_NORM;
  std::vector<ParamSpec> model{
      {"embed.weight", {5, 3}, 0},          {"layers.0.norm", {7}, 1},
      {"layers.0.weight", {11, 3}, 1},      {"layers.0.scalar", {}, 1},
      {"layers.0.empty", {0, 4}, 1},        {"layers.1.frozen", {9}, 2, CIUIC_PARAM_FROZEN},
      {"layers.1.weight", {3, 5}, 2},       {"unused", {4}, 3},
      {"head.weight", {5, 3}, 4, kNorm, 0}, {"head.bias", {2}, 4}};
  for (const size_t matrix : {0U, 2U, 5U, 6U, 8U}) {
    model[matrix].value = value;
  }
  return model;
}

/// What a slot of a step adds to an element; all of one sign, so that sums lose no digits.
inline double slot_gradient(uint64_t step, uint32_t slot, uint64_t param, int64_t i) {
  return 1 + 0.5 * std::sin(static_cast<double>(step * 31 + slot * 7 + param * 3) +
                            static_cast<double>(i));
}
using SlotGradient = std::function<double(uint64_t step, uint32_t slot, uint64_t param, int64_t i)>;

struct ShardingCase {
  std::string strategy = "ddp";
  int world = 1;
  uint32_t micro_batches = 1;
  std::vector<ParamSpec> model = odd_model();
  OptionValues options{};
  uint32_t step_flags = 0;
  int steps = 3;
  std::optional<int> delay_ms{};  // collectives run late, on threads of their own
  uint64_t denied = 0;            // capability bits that communicators lack
  bool announces_uses = true;
  std::vector<uint32_t> slot_of_rank{};  // position of a rank's slots; empty: its own number
  SlotGradient gradient = slot_gradient;

  [[nodiscard]] std::string text() const {
    return strategy + " world " + std::to_string(world) + " micro-batches " +
           std::to_string(micro_batches);
  }
};

struct Outcome {
  MemoryState state;
  std::vector<double> norms;                // by step
  std::vector<std::vector<double>> values;  // by rank: all bound values after the last step
  int64_t peak_bytes = 0;                   // of rank 0
};

/// The unit named "unused" has no data: its parameters get no gradient in any step.
inline bool is_reached(const ShardingCase& c, uint32_t unit) {
  return std::none_of(c.model.begin(), c.model.end(),
                      [unit](const ParamSpec& p) { return p.unit == unit && p.name == "unused"; });
}

inline std::unique_ptr<Outcome> run_case(const ShardingCase& c) {
  const LoadedPlugin plugin = load_plugin(c.strategy);
  const LoadedPlugin adamw = load_plugin("adamw");
  RankGroup ranks(c.world);
  for (const char* name : {"world", "data", "control"}) {
    ranks.meeting(name).deny(c.denied);
    if (c.delay_ms) {
      ranks.meeting(name).execute_late(std::chrono::milliseconds(*c.delay_ms));
    }
  }
  MemoryState start;
  initialise(start, c.model);
  auto out = std::make_unique<Outcome>();
  out->values.resize(static_cast<size_t>(c.world));
  std::mutex mutex;
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, plugin, adamw, c.model, c.options);
    d.instance().load(start);
    const auto r = static_cast<size_t>(rank.rank());
    const uint32_t position = c.slot_of_rank.empty() ? static_cast<uint32_t>(r) : c.slot_of_rank[r];
    const std::vector<ciuic_use> uses = d.schedule(c.micro_batches);
    const std::vector<ciuic_use> none;
    for (int step = 1; step <= c.steps; ++step) {
      d.begin(c.announces_uses ? uses : none, c.micro_batches, c.step_flags,
              position * c.micro_batches);
      for (const ciuic_use& u : uses) {
        const uint32_t slot = position * c.micro_batches + u.micro_batch;
        if (is_reached(c, u.unit)) {
          d.walk(u, [&](uint64_t param, int64_t i) {
            return c.gradient(static_cast<uint64_t>(step), slot, param, i);
          });
        } else {
          ciuic_use idle = u;
          idle.flags |= CIUIC_USE_IDLE;
          d.walk(idle, [](uint64_t, int64_t) { return 0.0; });
        }
      }
      d.end_backward();
      const ciuic_grad_stats s = d.stats(1.0 / 16);
      EXPECT_EQ(s.non_finite, 0U) << c.text();
      d.step(1e-2, 1.0 / 16);
      const std::lock_guard<std::mutex> lock(mutex);
      if (rank.rank() == 0) {
        out->norms.push_back(s.norm);
      }
    }
    out->values[r] = d.all_values();
    d.instance().save(out->state);
    if (rank.rank() == 0) {
      out->peak_bytes = rank.host.peak_bytes();
    }
  });
  EXPECT_TRUE(out->state.uneven().empty()) << c.text() << ": " << out->state.uneven().front();
  for (const std::vector<double>& values : out->values) {
    EXPECT_EQ(values, out->values[0]) << c.text() << ": ranks hold different values";
  }
  for (int r = 0; r < c.world; ++r) {
    EXPECT_EQ(ranks.rank(r).host.imbalance(), "") << c.text();
  }
  return out;
}

/// The largest difference of any element of two states that hold the same keys.
inline double difference(const MemoryState& a, const MemoryState& b) {
  double most = 0;
  EXPECT_EQ(a.entries().size(), b.entries().size());
  for (const auto& [key, entry] : a.entries()) {
    EXPECT_TRUE(b.has(key)) << key;
    EXPECT_EQ(entry.shape, b.entry(key).shape) << key;
    for (size_t i = 0; i < entry.written.size() && b.has(key); ++i) {
      const auto at = static_cast<int64_t>(i);
      most = std::max(most, std::abs(entry.at(at) - b.entry(key).at(at)));
    }
  }
  return most;
}

}  // namespace ciuic::testing
