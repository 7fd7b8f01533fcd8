// SPDX-License-Identifier: MIT
#include "tools/ciuic/schedule_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include <nlohmann/json.hpp>

namespace ciuic::tools {
namespace {

constexpr uint64_t kBetween = 3;  // points between two boundaries

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return text;
}

/// "468.9B"
std::string short_count(double count) {
  const std::pair<double, const char*> units[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}};
  for (const auto& [factor, name] : units) {
    if (count >= factor) {
      return number(count / factor) + name;
    }
  }
  return number(count);
}

/// The step in which position `steps` lies or ends, and the one after it.
void add_around(double steps, uint64_t total, std::set<uint64_t>& out) {
  if (steps < 1 || steps > static_cast<double>(total)) {
    return;
  }
  const auto last = static_cast<uint64_t>(steps);
  out.insert(last);
  if (last < total) {
    out.insert(last + 1);
  }
}

}  // namespace

ScheduleTable::ScheduleTable(const core::RunSchedules& schedules, bool predicts)
    : schedules_(schedules) {
  const core::SchedulePosition start = planned_position(schedules.course, 1);
  for (const auto& named : schedules.all()) {
    const bool is_used = named.second->varies() || named.second->at(start) != 0;
    if (is_used && (predicts || named.first != "mtp_loss_weight")) {
      columns_.push_back(named);
    }
  }
  add_boundaries();
  add_points_between();
}

ScheduleTable::Row ScheduleTable::row(uint64_t step) const {
  const core::SchedulePosition position = planned_position(schedules_.course, step);
  Row row{step, position.tokens, schedules_.course.of_step(step), {}};
  for (const auto& [key, schedule] : columns_) {
    row.values.push_back(schedule->at(position));
  }
  return row;
}

void ScheduleTable::add_boundaries() {
  const uint64_t total = schedules_.course.total_steps();
  std::set<uint64_t> steps{1, total};
  for (const auto& [key, schedule] : columns_) {
    for (const double end : schedule->ends()) {
      add_around(end, total, steps);
    }
  }
  const auto& stretches = schedules_.course.stretches();
  if (stretches.size() > 1) {
    add_around(static_cast<double>(stretches[1].first - 1), total, steps);
    add_around(static_cast<double>(stretches.back().first - 1), total, steps);
  }
  for (const uint64_t step : steps) {
    rows_.push_back(row(step));
  }
}

/// Where nothing changes there is nothing to show.
void ScheduleTable::add_points_between() {
  const auto is_alike = [](const Row& a, const Row& b) {
    return a.values == b.values && a.batch == b.batch;
  };
  std::vector<Row> all;
  for (size_t i = 0; i < rows_.size(); ++i) {
    all.push_back(rows_[i]);
    if (i + 1 == rows_.size() || is_alike(rows_[i], rows_[i + 1])) {
      continue;
    }
    const uint64_t gap = rows_[i + 1].step - rows_[i].step;
    const uint64_t count = std::min(kBetween, gap - 1);
    for (uint64_t k = 1; k <= count; ++k) {
      all.push_back(row(rows_[i].step + gap / (count + 1) * k));
    }
  }
  rows_ = std::move(all);
}

std::string ScheduleTable::text() const {
  const bool has_lengths = std::any_of(rows_.begin(), rows_.end(), [&](const Row& r) {
    return r.batch.row_tokens != rows_.front().batch.row_tokens;
  });
  std::vector<std::vector<std::string>> lines{{"step", "tokens", "sequences"}};
  if (has_lengths) {
    lines[0].emplace_back("sequence_tokens");
  }
  for (const auto& [key, schedule] : columns_) {
    lines[0].emplace_back(key);
  }
  for (const Row& row : rows_) {
    auto& line = lines.emplace_back(std::vector<std::string>{
        std::to_string(row.step), short_count(row.tokens), std::to_string(row.batch.samples)});
    if (has_lengths) {
      line.push_back(std::to_string(row.batch.row_tokens));
    }
    for (const double value : row.values) {
      line.push_back(number(value));
    }
  }
  std::string out;
  for (const auto& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) {
      size_t width = 0;
      for (const auto& other : lines) {
        width = std::max(width, other[c].size());
      }
      out += std::string(c == 0 ? 0 : 2, ' ') + std::string(width - line[c].size(), ' ') + line[c];
    }
    out += "\n";
  }
  return out;
}

std::string ScheduleTable::plots(const PlotStyle& style) const {
  const core::BatchCourse& course = schedules_.course;
  const auto last = static_cast<double>(course.total_steps());
  std::vector<double> rates, batches;
  for (int i = 0; i < plot_points(style); ++i) {
    const double share = (i + 0.5) / plot_points(style);
    const double steps =
        course.is_in_tokens() ? course.steps_at(share * course.total_tokens()) : share * last;
    const auto step = static_cast<uint64_t>(std::clamp(std::ceil(steps), 1.0, last));
    rates.push_back(schedules_.learning_rate.at(planned_position(course, step)));
    batches.push_back(static_cast<double>(course.of_step(step).samples));
  }
  const std::string until = course.is_in_tokens() ? short_count(course.total_tokens()) + " tokens"
                                                  : std::to_string(course.total_steps()) + " steps";
  return plot("learning_rate", rates, until, style) + "\n" +
         plot("sequences", batches, until, style);
}

std::string ScheduleTable::json() const {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const Row& row : rows_) {
    nlohmann::ordered_json point{{"step", row.step},
                                 {"tokens", static_cast<uint64_t>(row.tokens)},
                                 {"batch_sequences", row.batch.samples},
                                 {"sequence_tokens", row.batch.row_tokens}};
    for (size_t c = 0; c < columns_.size(); ++c) {
      point[std::string(columns_[c].first)] = row.values[c];
    }
    points.push_back(std::move(point));
  }
  const nlohmann::ordered_json all{
      {"steps", schedules_.course.total_steps()},
      {"tokens", static_cast<uint64_t>(schedules_.course.total_tokens())},
      {"points", std::move(points)}};
  return all.dump(1) + "\n";
}

}  // namespace ciuic::tools
