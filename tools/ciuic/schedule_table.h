// SPDX-License-Identifier: MIT
//
// What a run's schedules and batches come to, before it runs: the values at every boundary of a
// phase and at some points between, as a table, as two small plots, or as JSON. A few hundred
// evaluations, whatever the length of the run.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/train/run_schedules.h"
#include "tools/ciuic/terminal_plot.h"

namespace ciuic::tools {

class ScheduleTable {
 public:
  /// `predicts`: the model has layers for multi-token prediction, so that weight is shown too.
  /// `schedules` must outlive it.
  ScheduleTable(const core::RunSchedules& schedules, bool predicts);

  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string plots(const PlotStyle& style) const;
  [[nodiscard]] std::string json() const;

 private:
  struct Row {
    uint64_t step = 0;
    double tokens = 0;
    core::StepTotals batch;
    std::vector<double> values;  // of columns_
  };
  [[nodiscard]] Row row(uint64_t step) const;
  void add_boundaries();
  void add_points_between();

  const core::RunSchedules& schedules_;
  core::NamedSchedules columns_;
  std::vector<Row> rows_;
};

}  // namespace ciuic::tools
