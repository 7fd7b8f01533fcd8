// SPDX-License-Identifier: MIT
//
// One save in which one call of "ciuic.io" goes wrong, and what must hold afterwards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint_tests.hpp"
#include "ranks.hpp"

namespace ciuic::testing::checkpoint {

struct Scenario {
  IoFault fault = IoFault::None;
  int32_t code = 0;
  std::optional<PowerCut> cut;  // after the save ended
  int world = 1;
  bool is_over = false;  // the save goes over a checkpoint
};

/// Runs a scenario at single calls. What was there before still reads; the new checkpoint is whole
/// or absent (or DATA_LOSS); success is reported only for a durable one; the next save works and
/// leaves what a save without faults leaves.
class FaultySave {
 public:
  FaultySave(const TestContext& context, Scenario scenario);

  /// False when the save ended before call `call`.
  bool run(int64_t call, uint64_t seed = 0);
  /// Calls 1, 2, ... to the end; every few where that takes too long.
  void run_all();

 private:
  struct Run;
  [[nodiscard]] std::string title(int64_t call, const IoPlan& plan) const;
  void check_old(Run& run) const;
  void check_new(Run& run) const;
  void check_next(Run& run) const;

  const TestContext& context_;
  Scenario scenario_;
  State before_, after_;
  std::vector<std::string> clean_;  // paths after saves without faults
  int64_t calls_ = 0;               // of a save without faults
};

}  // namespace ciuic::testing::checkpoint
