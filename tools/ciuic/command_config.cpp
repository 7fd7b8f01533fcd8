// SPDX-License-Identifier: MIT
//
// ciuic config check | show | reference.
#include <iostream>
#include <unistd.h>

#include "core/config/config_text.h"
#include "core/train/run_plan.h"
#include "tools/ciuic/check_run.h"
#include "tools/ciuic/commands.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;

void check(const core::PlanRequest& request, core::Log& log) {
  check_run(request, log);
  std::cout << request.file << ": ok\n";
}

void show(const core::PlanRequest& request, core::Log& log) {
  const core::RunPlan plan = core::make_plan(request, log);
  std::cout << core::show_toml(plan.config, plan.parts);
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
      "show       prints the resolved configuration, with where each value comes from\n"
      "reference  prints every key with type, default, range and meaning",
      "  ciuic config check configs/quickstart.toml\n"
      "  ciuic config show configs/quickstart.toml --set optimizer.adamw.beta2=0.99\n"
      "  ciuic config reference --format md\n");
  line.options().add_options()(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "Overrides one key of the file; may be given often")(
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
  if (request.file.empty()) {
    throw line.usage_failure("no FILE is given");
  }
  return in_child([&] { action == "check" ? check(request, log) : show(request, log); });
}

}  // namespace ciuic::tools
