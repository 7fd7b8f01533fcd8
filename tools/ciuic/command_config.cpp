// SPDX-License-Identifier: MIT
//
// ciuic config check | show | reference.
#include <iostream>
#include <unistd.h>

#include "core/config/config_text.h"
#include "core/train/planned_course.h"
#include "core/train/run_plan.h"
#include "core/train/run_schedules.h"
#include "tools/ciuic/check_run.h"
#include "tools/ciuic/commands.h"
#include "tools/ciuic/schedule_table.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;

/// In a run rank 0 does so.
void show_warnings(const core::RunPlan& plan, core::Log& log) {
  for (const std::string& warning : plan.warnings) {
    log.warn(warning);
  }
}

void check(const core::PlanRequest& request, core::Log& log) {
  show_warnings(check_run(request, log), log);
  std::cout << request.file << ": ok\n";
}

void show(const core::PlanRequest& request, core::Log& log) {
  const core::RunPlan plan = core::make_plan(request, log);
  show_warnings(plan, log);
  std::cout << core::show_toml(plan.config, plan.parts);
}

void show_schedule(const core::PlanRequest& request, bool is_json, core::Log& log) {
  const core::RunPlan plan = core::make_plan(request, log);
  const core::RunSchedules schedules(
      plan.config, core::planned_course(plan, static_cast<int>(plan.config.run.ranks), log));
  const ScheduleTable table(schedules, plan.model.num_nextn_predict_layers > 0);
  if (is_json) {
    std::cout << table.json();
    return;
  }
  std::cout << table.text() << "\n" << table.plots(PlotStyle::of_stdout());
}

int reference(const std::string& format) {
  const std::vector<core::ModelField> fields = core::model_fields();
  if (format != "toml" && format != "md") {
    throw core::Failure(core::ExitCode::Usage, "--format: got " + format + ", expected toml or md");
  }
  std::cout << (format == "md" ? core::reference_markdown(fields) : core::reference_toml(fields));
  return 0;
}

}  // namespace

int config(const Arguments& arguments) {
  CommandLine line(
      "config", "ciuic config check|show FILE [--set KEY=VALUE]...\n       ciuic config reference",
      "check      says everything that is wrong with FILE, its plugins, options and data\n"
      "show       prints the resolved configuration, with where each value comes from;\n"
      "           with --schedule what learning rate, batch and the like are over the run\n"
      "reference  prints every key with type, default, range and meaning",
      "  ciuic config check configs/quickstart.toml\n"
      "  ciuic config show configs/quickstart.toml --set optimizer.adamw.beta2=0.99\n"
      "  ciuic config show configs/deepseek-v3-recipe.toml --schedule\n"
      "  ciuic config reference --format md\n");
  line.options().add_options()(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "Overrides one key of the file; may be given often")(
      "schedule", po::bool_switch(),
      "Of show: a table of the scheduled values, with plots of learning rate and batch")(
      "json", po::bool_switch(), "Of show --schedule: the numbers as one JSON object")(
      "format", po::value<std::string>()->default_value("toml"), "Of the reference: toml or md");
  add_log_options(line);
  line.positional("action", 1);
  line.positional("file", 1);
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  core::Log log({0, 1, terminal_level(*values), "", has_color(STDERR_FILENO)});
  const std::string action = get(*values, "action");
  const core::PlanRequest request{get(*values, "file"), get_all(*values, "set"), 0};
  if (action == "reference") {
    if (!request.file.empty() || !request.overrides.empty()) {
      throw line.usage_failure("reference is of all keys: it takes no FILE and no --set");
    }
    return reference(get(*values, "format"));
  }
  if (action != "check" && action != "show") {
    throw line.usage_failure("got \"" + action + "\", expected check, show or reference");
  }
  const bool has_schedule = (*values)["schedule"].as<bool>();
  const bool is_json = (*values)["json"].as<bool>();
  if ((has_schedule && action != "show") || (is_json && !has_schedule)) {
    throw line.usage_failure(is_json && !has_schedule ? "--json needs show --schedule"
                                                      : "--schedule belongs to show");
  }
  if (request.file.empty()) {
    throw line.usage_failure("no FILE is given");
  }
  return in_child([&] {
    if (action == "check") {
      check(request, log);
    } else if (has_schedule) {
      show_schedule(request, is_json, log);
    } else {
      show(request, log);
    }
  });
}

}  // namespace ciuic::tools
