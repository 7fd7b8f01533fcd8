// SPDX-License-Identifier: MIT
//
// ciuic estimate: what a run will need, before it starts: parameters, memory per rank and part,
// FLOPs of a token. Nothing of the model is allocated; after a run, predicted against measured.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <ciuic/view.hpp>

#include "core/launch/environment.h"
#include "core/model/activation_bytes.h"
#include "core/plugin/batch_scheduler.h"
#include "core/plugin/precision.h"
#include "core/train/parameter_table.h"
#include "core/train/planned_course.h"
#include "core/train/process_memory.h"
#include "core/train/run_plan.h"
#include "core/train/run_schedules.h"
#include "core/train/state_bytes.h"
#include "tools/worker/commands.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;
using core::Failure;

/// Samples that no run reaches: an estimate needs no data.
constexpr uint64_t kSamples = uint64_t{1} << 40;

/// A run's plugins as far as an estimate asks them, without ranks and data.
class Asked {
 public:
  Asked(const core::RunPlan& plan, int world, core::Log& log) : plan_(plan), log_(log) {
    placement_.world = placement_.local_world = world;
    data_.struct_size = sizeof(data_);
    data_.ctx = const_cast<core::RunPlan*>(&plan_);
    data_.samples = [](void*) { return kSamples; };
    data_.lengths = [](void* ctx, uint64_t, uint64_t count, uint64_t* tokens) {
      const auto& config = static_cast<const core::RunPlan*>(ctx)->config;
      std::fill_n(tokens, count, static_cast<uint64_t>(config.data.sequence_tokens));
      return static_cast<ciuic_status*>(nullptr);
    };
  }

  template <typename T>
  std::unique_ptr<T> create(uint32_t kind) {
    const core::ChosenPlugin& chosen = plan_.plugin(kind);
    auto host = std::make_unique<core::HostContext>(chosen.found.descriptor->name, log_);
    host->add_service("ciuic.data", &data_);
    if (optimizer_.vt != nullptr) {
      host->add_service("ciuic.optimizer", &optimizer_);
    }
    return std::make_unique<T>(chosen.found, std::move(host), chosen.options, placement_);
  }

  /// To plugins that are created from here on.
  void offer_optimizer(const core::Instance& optimizer) {
    optimizer_ = {sizeof(optimizer_), CIUIC_KIND_OPTIMIZER, optimizer.table(), optimizer.self()};
  }

  /// The largest step: batches never shrink.
  core::BatchPlan largest_step(const core::BatchCourse& course) {
    const auto scheduler = create<core::BatchSchedulerPlugin>(CIUIC_KIND_BATCH_SCHEDULER);
    const core::BatchCourse::Stretch& last = course.stretches().back();
    ciuic_batch_request request = core::first_request(plan_, placement_.world);
    request.step = last.first;
    request.consumed_samples = last.samples_before;
    request.consumed_tokens = last.tokens_before;
    return scheduler->plan(request);
  }

 private:
  const core::RunPlan& plan_;
  core::Log& log_;
  core::Placement placement_;
  ciuic_data_service data_{};
  ciuic_kind_service optimizer_{};
};

int64_t bytes_of(int64_t elements, const ciuic_dtype& dtype) {
  return (elements * static_cast<int64_t>(dtype.bits) * dtype.lanes + 7) / 8;
}

int64_t rows_of(const core::BatchPlan& plan) {
  int64_t rows = 0;
  for (const ciuic_batch_item& item : plan.items) {
    rows = std::max<int64_t>(rows, int64_t{item.row} + 1);
  }
  return rows;
}

struct Estimate {
  int64_t parameters = 0, active = 0;
  double flops_per_token = 0;
  int world = 1;
  int64_t rows = 0, tokens = 0, step_tokens = 0;
  core::StateBytes state;
  core::ActivationBytes activations;
  int64_t base = 0;  // a process that has done nothing yet

  [[nodiscard]] int64_t total() const { return base + state.total() + activations.peak(); }
};

Estimate estimate_of(const core::RunPlan& plan, int world, core::Log& log) {
  Asked asked(plan, world, log);
  const core::RunSchedules schedules(plan.config, core::planned_course(plan, world, log));
  const core::BatchPlan step = asked.largest_step(schedules.course);
  const auto precision = asked.create<core::PrecisionPlugin>(CIUIC_KIND_PRECISION);
  const auto optimizer = asked.create<core::Instance>(CIUIC_KIND_OPTIMIZER);
  const std::vector<core::ParameterSpec> specs =
      core::parameter_specs(plan.model, {0, plan.config.parallel.expert});

  Estimate e;
  e.base = core::resident_bytes();
  e.world = world;
  e.parameters = core::count_parameters(plan.model);
  e.active = core::count_active_parameters(plan.model);
  e.rows = rows_of(step);
  e.tokens = step.row_tokens;
  e.step_tokens = static_cast<int64_t>(step.tokens);
  e.flops_per_token = core::flops_per_token(plan.model, e.tokens);
  const std::vector<core::MeshGroup> mesh =
      core::mesh_groups(world, 0, static_cast<int>(plan.config.parallel.expert));
  const core::ParameterTable table(specs, *precision, *optimizer, plan.config.optimizer,
                                   core::group_id(mesh, "data"),
                                   core::group_id(mesh, "expert_data"));
  asked.offer_optimizer(*optimizer);
  const auto sharding = asked.create<core::ShardingPlugin>(CIUIC_KIND_SHARDING);
  e.state = core::state_bytes(*sharding, table.parameters(), mesh, world,
                              plan.config.run.is_any_world() ? step.micro_batches : 0);
  const ciuic_dtype activation = precision->dtype_for("model", CIUIC_ROLE_ACTIVATION);
  const core::Objective first = schedules.objective.at({1, 0});
  e.activations =
      core::activation_bytes(plan.model, {e.rows, e.tokens, bytes_of(1, activation),
                                          core::recompute_named(plan.config.run.recompute),
                                          first.has_balance(), first.router_z != 0});
  return e;
}

/// The largest rank's peak of the last run in the folder; 0: there is none.
int64_t measured_peak(const std::string& folder) {
  std::ifstream file(folder + "/metrics.jsonl");
  int64_t peak = 0;
  for (std::string text; std::getline(file, text);) {
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_object() || line.value("type", "") != "end" || !line.contains("rss_peak_bytes")) {
      continue;
    }
    peak = 0;
    for (const nlohmann::json& rank : line["rss_peak_bytes"]) {
      peak = std::max(peak, rank.is_number() ? rank.get<int64_t>() : 0);
    }
  }
  return peak;
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

void print_row(const char* name, int64_t bytes, const std::string& note = "") {
  const bool is_large = bytes >= 1'000'000'000;
  std::printf("  %-22s %12.3f %s  %s\n", name, static_cast<double>(bytes) / (is_large ? 1e9 : 1e6),
              is_large ? "GB" : "MB", note.c_str());
}

void print_text(const core::RunPlan& plan, const Estimate& e, int64_t peak) {
  std::printf("parameters  %s, of which a token meets %s (without the input embedding)\n",
              grouped(e.parameters).c_str(), grouped(e.active).c_str());
  std::printf("a token     %.4g GFLOP forward and backward, at rows of %s tokens\n",
              e.flops_per_token / 1e9, grouped(e.tokens).c_str());
  std::printf("a step      %s tokens on %d ranks; a micro-batch has %lld rows\n\n",
              grouped(e.step_tokens).c_str(), e.world, static_cast<long long>(e.rows));
  std::printf("memory of a rank, recompute = %s\n", plan.config.run.recompute.c_str());
  print_row("values", e.state.values);
  print_row("gradients", e.state.gradients);
  if (e.state.reductions > 0) {
    print_row("gradients on the wire", e.state.reductions);
  }
  print_row("masters", e.state.masters);
  print_row("optimizer state", e.state.optimizer);
  if (e.state.slots > 0) {
    print_row("sums of slots", e.state.slots, "run.reproducible = \"any_world\"");
  }
  if (e.state.gathered > 0) {
    print_row("units made whole", e.state.gathered, "two, the largest");
  }
  print_row("activations kept", e.activations.kept);
  print_row("activations passing", e.activations.passing);
  print_row("the process itself", e.base, "measured now");
  print_row("in all", e.total(),
            "state as " + plan.plugin(CIUIC_KIND_SHARDING).found.descriptor->name +
                std::string(" places it"));
  if (peak > 0) {
    print_row("measured peak", peak,
              "of the largest rank, by the last run in " + plan.config.run.output);
    std::printf("  %-22s %12.3f\n", "predicted / measured",
                static_cast<double>(e.total()) / static_cast<double>(peak));
  }
}

void print_json(const Estimate& e, int64_t peak) {
  nlohmann::ordered_json out = {{"parameters", e.parameters},
                                {"active_parameters", e.active},
                                {"flops_per_token", e.flops_per_token},
                                {"world_size", e.world},
                                {"step_tokens", e.step_tokens},
                                {"micro_batch_rows", e.rows},
                                {"row_tokens", e.tokens},
                                {"value_bytes", e.state.values},
                                {"gradient_bytes", e.state.gradients},
                                {"master_bytes", e.state.masters},
                                {"optimizer_bytes", e.state.optimizer},
                                {"reduction_bytes", e.state.reductions},
                                {"slot_bytes", e.state.slots},
                                {"gathered_bytes", e.state.gathered},
                                {"state_bytes", e.state.total()},
                                {"activation_kept_bytes", e.activations.kept},
                                {"activation_passing_bytes", e.activations.passing},
                                {"process_bytes", e.base},
                                {"total_bytes", e.total()}};
  if (peak > 0) {
    out["measured_peak_bytes"] = peak;
  }
  std::printf("%s\n", out.dump(2).c_str());
}

CommandLine command_line() {
  CommandLine line("estimate", "ciuic estimate FILE [--set KEY=VALUE]... [--ranks N] [--json]",
                   "Says what the run that FILE describes will need, without allocating it: "
                   "parameters, FLOPs of a\ntoken, and the memory of a rank part by part. Where "
                   "run.output holds a run, the prediction stands\nbeside what that run "
                   "measured. Reads no data.",
                   "  ciuic estimate configs/quickstart.toml\n"
                   "  ciuic estimate configs/quickstart.toml --set model.preset=deepseek-v3\n");
  line.options().add_options()(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "Overrides one key of FILE")("ranks", po::value<int>()->value_name("N"),
                                   "As many ranks, instead of run.ranks")(
      "json", "Prints one JSON object with all numbers in bytes");
  add_log_options(line);
  line.positional("file", 1);
  return line;
}

}  // namespace

int estimate(const Arguments& arguments) {
  CommandLine line = command_line();
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  if (get(*values, "file").empty()) {
    throw line.usage_failure("no FILE is given");
  }
  const int ranks = values->count("ranks") > 0 ? (*values)["ranks"].as<int>() : 0;
  if (values->count("ranks") > 0 && ranks < 1) {
    throw line.usage_failure("--ranks: got " + std::to_string(ranks) + ", expected 1 or more");
  }
  core::Log log({0, 1, terminal_level(*values), "", has_color(STDERR_FILENO)});
  const core::RunPlan plan =
      core::make_plan({get(*values, "file"), get_all(*values, "set"), ranks}, log);
  const int world = ranks > 0 ? ranks : static_cast<int>(plan.config.run.ranks);
  const Estimate e = estimate_of(plan, world, log);
  const int64_t peak = measured_peak(plan.config.run.output);
  if (values->count("json") > 0) {
    print_json(e, peak);
  } else {
    print_text(plan, e, peak);
  }
  return 0;
}

}  // namespace ciuic::tools
