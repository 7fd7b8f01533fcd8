// SPDX-License-Identifier: MIT
//
// A batch scheduler on the test bench: an instance with its host, its data and its seat; plans
// copied out so that two can be compared; and a cursor that walks through steps as a run does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ciuic/abi/batch_scheduler.h>
#include <ciuic/testing/conformance.hpp>
#include <ciuic/testing/features.hpp>
#include <ciuic/testing/guarded_struct.hpp>
#include <ciuic/testing/reference_data.hpp>
#include <ciuic/testing/reference_threads.hpp>

namespace ciuic::testing {

constexpr uint32_t kRowTokens = 64;
constexpr int32_t kWorlds = 8;  // worlds 1..8 are tried

/// What a scheduler says in its features.
constexpr const char* kPacks = "lengths";          // serves samples of any length
constexpr const char* kDropsTail = "drops:epoch";  // leaves out samples at an epoch's end
constexpr const char* kTruncates = "drops:long";   // leaves out tokens past row_tokens
constexpr const char* kAdaptive = "adaptive";      // reports change later plans
constexpr const char* kGrows = "grows";            // totals never shrink; a host may look ahead

struct Plan {
  std::vector<ciuic_batch_item> items;
  uint32_t micro_batches = 0;
  uint32_t row_tokens = 0;
  uint64_t samples = 0;
  uint64_t tokens = 0;
};
/// Where two plans differ, in words; empty: they are equal.
std::string difference(const Plan& got, const Plan& expected);
std::string to_text(const ciuic_batch_item& item);
std::string to_text(const ciuic_batch_request& request);

/// How far a run has come.
struct Cursor {
  uint64_t step = 1;
  uint64_t samples = 0;
  uint64_t tokens = 0;
};

class SchedulerBench {
 public:
  /// Throws what create throws.
  SchedulerBench(const TestContext& context, ReferenceData& data, Seat seat = {});
  SchedulerBench(const SchedulerBench&) = delete;
  SchedulerBench& operator=(const SchedulerBench&) = delete;

  [[nodiscard]] ciuic_batch_request request(const Cursor& cursor, int32_t only_rank = -1) const;
  /// Throws what plan reports.
  [[nodiscard]] Plan plan(const ciuic_batch_request& request) const;
  [[nodiscard]] Plan plan(const Cursor& cursor) const { return plan(request(cursor)); }
  void observe(uint64_t step, uint32_t attempt,
               const std::vector<ciuic_rank_report>& reports) const;
  void save(MemoryState& state) const;
  void load(MemoryState& state) const;
  [[nodiscard]] uint32_t world() const { return world_; }

 private:
  const ciuic_descriptor& descriptor_;
  TestHost host_;
  ReferenceThreads threads_;
  ReferenceData& data_;
  uint64_t seed_;
  uint32_t world_;
  PluginInstance instance_;
};

/// The cursor after a plan. Fails when the plan has no samples: such a run never ends.
Cursor after(const Cursor& cursor, const Plan& plan);
/// The cursors of the first `steps` steps.
std::vector<Cursor> first_steps(const SchedulerBench& bench, int steps);

/// World sizes of 1..8 that the plugin takes with its options; its refusals are not faults.
std::vector<int32_t> accepted_worlds(const TestContext& context);
/// The largest of them up to `limit`.
int32_t largest_world(const TestContext& context, int32_t limit = kWorlds);

/// Data that every scheduler can serve (rows of row_tokens), and, for schedulers that pack,
/// documents of any length.
std::vector<std::vector<uint64_t>> data_sets(const TestContext& context, uint64_t rows);

}  // namespace ciuic::testing
