// SPDX-License-Identifier: MIT
//
// Bytes: what a rank takes from the host is what its extents say.
#include <algorithm>
#include <string>

#include "sharding_tables.h"
#include "steps.h"

namespace ciuic::testing {
namespace {

// What may come on top of 110 % of the extents: gathered values, gradients in flight and buckets
// for three of the largest units at once (one in use, one being fetched, one being reduced), and
// 128 bytes for each tensor's alignment.
constexpr int64_t kUnitsInFlight = 3;
constexpr int64_t kAlignmentBytes = 128;
constexpr double kTolerance = 0.1;

Model wide_model() {
  Model model;
  for (uint32_t unit = 0; unit < 12; ++unit) {
    for (const char* part : {"a", "b"}) {
      ModelParam p{"layers." + std::to_string(unit) + "." + part, {1021, 3}, unit};
      p.value = kBF16;
      model.push_back(p);
    }
  }
  return model;
}

int64_t bytes_of_extents(StepDriver& d) {
  ciuic_shard_plan own = *d.plan().c();
  own.flags = CIUIC_PLAN_OWN;
  ciuic_array shown{};
  d.check(d.vt().plan(d.self(), &own, &shown));
  int64_t bytes = 0;
  for (const ciuic_extent& e : ArrayView<ciuic_extent>(shown)) {
    bytes += (e.end - e.begin) * dtype_bytes(e.dtype);
  }
  return bytes;
}

int64_t bytes_in_flight(const Model& model) {
  int64_t largest = 0;
  for (uint32_t u = 0; u < num_units(model); ++u) {
    int64_t bytes = 0;
    for (const ModelParam& p : model) {
      const int64_t element = dtype_bytes(p.value) + dtype_bytes(p.grad) + dtype_bytes(p.reduce);
      bytes += p.unit == u ? p.num_elements() * element : 0;
    }
    largest = std::max(largest, bytes);
  }
  return kUnitsInFlight * largest;
}

void bytes_per_rank(const TestContext& context) {
  const Model model = wide_model();
  for (const int world : {1, 2, 4}) {
    drive(context, world, model, [&](StepDriver& d) {
      const std::string who =
          "rank " + std::to_string(d.rank().rank()) + " of " + std::to_string(world) + " ";
      const auto planned = static_cast<double>(bytes_of_extents(d));
      for (uint64_t update = 1; update <= 2; ++update) {
        d.run_backward(whole_gradient);
        (void)d.stats();
        d.step(rule_step(update));
      }
      const auto peak = static_cast<double>(d.rank().host.peak_bytes());
      const int64_t extra =
          bytes_in_flight(model) + kAlignmentBytes * 6 * static_cast<int64_t>(model.size());
      require(peak <= planned * (1 + kTolerance) + static_cast<double>(extra),
              who + "took " + std::to_string(peak) + " bytes at its peak; its extents are " +
                  std::to_string(planned) + " bytes, 10 % more and " + std::to_string(extra) +
                  " for what is in flight are allowed");
      require(peak >= planned * (1 - kTolerance),
              who + "took " + std::to_string(peak) + " bytes from the host, but its extents are " +
                  std::to_string(planned) +
                  ": the plan promises more than is held, or memory "
                  "was taken elsewhere");
    });
  }
}

void steady(const TestContext& context) {
  drive(context, 2, wide_model(), [&](StepDriver& d) {
    int64_t after_second = 0;
    for (uint64_t update = 1; update <= 8; ++update) {
      d.run_backward(whole_gradient);
      (void)d.stats();
      d.step(rule_step(update));
      const int64_t live = d.rank().host.live_bytes();
      after_second = update == 2 ? live : after_second;
      require(update < 2 || live <= after_second,
              "after update " + std::to_string(update) + " the instance holds " +
                  std::to_string(live) + " bytes, after the second " +
                  std::to_string(after_second) + ": it grows");
    }
  });
}

/// Memory runs out at every allocation of setup and load: a clean status, nothing kept.
void no_memory(const TestContext& context) {
  const Model model = TwoLayerNet::model();
  MemoryState start;
  put_first_values(start, model);
  for (int64_t count = 0; count < 64; ++count) {
    bool is_enough = false;
    RankGroup ranks(1);
    run_ranks(ranks, [&](Rank& rank) {
      ReferenceAdamW optimizer(rank.host.host());
      rank.host.fail_allocations_after(count);
      try {
        StepDriver d(context, rank, model, &optimizer);
        d.load(start);
        is_enough = true;
      } catch (const Error& e) {
        require(e.code() == CIUIC_EXHAUSTED,
                "without memory for allocation " + std::to_string(count + 1) + " setup says \"" +
                    e.what() + "\", code " + code_name(e.code()) + "; expected EXHAUSTED");
      }
    });
    if (is_enough) {
      return;
    }
  }
}

}  // namespace

TestTable sharding_memory_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_SHARDING;
  return {
      {"sharding.memory.bytes", 3, kKind, 60,
       "a rank's peak is its extents within 10 %, and three units in flight", bytes_per_rank},
      {"sharding.memory.steady", 3, kKind, 60, "memory does not grow from step to step", steady},
      {"sharding.memory.exhausted", 3, kKind, 60,
       "setup and load without memory end in EXHAUSTED and keep nothing", no_memory},
  };
}

}  // namespace ciuic::testing
