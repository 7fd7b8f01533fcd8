// SPDX-License-Identifier: MIT
#include "core/bench/step_bench.h"

#include <algorithm>
#include <cmath>
#include <sys/resource.h>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "core/bench/module_flops.h"
#include "core/bench/peak_memory.h"
#include "core/launch/startup_clock.h"
#include "core/log/failure.h"
#include "core/model/parameter_specs.h"
#include "core/parallel/collective.h"
#include "core/train/run_folder.h"
#include "core/train/session.h"
#include "core/train/tensor_bridge.h"

namespace ciuic::core {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPartNames[kNumParts] = {
    "between", "embedding",  "norms",    "attention",    "router", "experts", "dense_feed_forward",
    "loss",    "prediction", "sharding", "communication"};

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

at::ScalarType activation_of(const Session& session) {
  return to_scalar_type(session.precision().dtype_for("model", CIUIC_ROLE_ACTIVATION));
}

/// The value below which a share of the values lies, by linear interpolation.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

Json per_step(const MemoryCounts& counts, double steps) {
  return {{"allocations_per_step", static_cast<double>(counts.allocations) / steps},
          {"allocated_bytes_per_step", static_cast<double>(counts.allocated_bytes) / steps},
          {"frees_per_step", static_cast<double>(counts.frees) / steps}};
}

double sum(const std::array<double, kNumParts>& parts) {
  double total = 0;
  for (const double seconds : parts) {
    total += seconds;
  }
  return total;
}

}  // namespace

/// What all ranks have together, in one vector, so that it is summed at once.
struct StepBench::Sums {
  explicit Sums(int world) : peaks(static_cast<size_t>(world)) {}

  StepClock::Sheet sheet{};
  double gemm_before = 0, gemm_after = 0, own_gemm = 0;
  std::vector<double> peaks;

  template <typename Visit>
  void each(const Visit& visit) {
    for (auto& phase : sheet) {
      for (double& seconds : phase) {
        visit(seconds);
      }
    }
    visit(gemm_before);
    visit(gemm_after);
    visit(own_gemm);
    for (double& peak : peaks) {
      visit(peak);
    }
  }
};

StepBench::StepBench(StepBenchRequest request) : request_(std::move(request)) { count_storage(); }

StepBench::~StepBench() { StepClock::current = nullptr; }

bool StepBench::begin_step(Session& session) {
  if (seen_ == request_.warmup) {
    begin_timed_steps(session);
  }
  return seen_ < request_.warmup + request_.steps;
}

void StepBench::begin_timed_steps(Session& session) {
  peak_rss_ = peak_rss_bytes();
  before_ = gemm_rate(session, Products::LibTorch);
  own_ = gemm_rate(session, Products::Own);
  reset_peak_rss();
  storage_ = storage_counts();
  host_memory_ = host_memory_counts();
  page_faults_ = page_faults();
  StepClock::current = &clock_;
  begin_ = StepClock::Clock::now();
  clock_.take(begin_);
}

/// All ranks at once, as in a step: their products share the machine.
GemmRate StepBench::gemm_rate(Session& session, Products products) const {
  barrier(session.control(), "bench: before the GEMM rate");
  const GemmRate rate = measure_gemm_rate(activation_of(session), products);
  barrier(session.control(), "bench: after the GEMM rate");
  return rate;
}

void StepBench::end_step(const ObservedStep& step) {
  ++seen_;
  last_ = step;
  if (seen_ <= request_.warmup) {
    return;
  }
  const auto now = StepClock::Clock::now();
  seconds_.push_back(std::chrono::duration<double>(now - begin_).count());
  begin_ = now;
  if (seen_ == request_.warmup + request_.steps) {
    sheet_ = clock_.take(now);
    StepClock::current = nullptr;
    storage_ = storage_counts() - storage_;
    host_memory_ = host_memory_counts() - host_memory_;
    page_faults_ = page_faults() - page_faults_;
  }
}

void StepBench::finish(Session& session, const StartupClock& startup) {
  if (seconds_.size() < request_.steps) {
    throw Failure(ExitCode::Usage,
                  "the run ended after " + std::to_string(seen_) + " steps, expected " +
                      std::to_string(request_.warmup + request_.steps) + " to measure",
                  "raise run.steps or run.tokens, or ask for fewer --steps");
  }
  peak_rss_ = std::max(peak_rss_, peak_rss_bytes());
  after_ = gemm_rate(session, Products::LibTorch);
  const Sums sums = summed(session);
  if (session.is_first()) {
    replace_file(request_.file, report(session, sums, startup));
  }
}

StepBench::Sums StepBench::summed(Session& session) const {
  Sums sums(session.identity().world);
  sums.sheet = sheet_;
  sums.gemm_before = before_.middle();
  sums.gemm_after = after_.middle();
  sums.own_gemm = own_.middle();
  sums.peaks[static_cast<size_t>(session.identity().rank)] = static_cast<double>(peak_rss_);
  std::vector<double> values;
  sums.each([&](double& value) { values.push_back(value); });
  reduce_in_place(session.control(), values, {}, "bench: sums of all ranks");
  size_t next = 0;
  sums.each([&](double& value) { value = values[next++]; });
  return sums;
}

std::string StepBench::report(const Session& session, const Sums& sums,
                              const StartupClock& startup) const {
  const RunPlan& plan = session.plan();
  const double world = session.identity().world;
  const auto steps = static_cast<double>(seconds_.size());
  const double gemm = (sums.gemm_before + sums.gemm_after) / 2;
  const double median = quantile(seconds_, 0.5);
  // Of a mean step on a mean rank.
  const auto seconds = [&](Phase phase, Part part) {
    return sums.sheet[static_cast<size_t>(phase)][static_cast<size_t>(part)] / steps / world;
  };
  double mean = 0;
  for (const auto& phase : sums.sheet) {
    mean += sum(phase) / steps / world;
  }
  const auto plugin = [&](uint32_t kind) { return plan.plugin(kind).found.descriptor->name; };

  Json json;
  json["run"] = {{"world_size", session.identity().world},
                 {"threads", at::get_num_threads()},
                 {"precision", plugin(CIUIC_KIND_PRECISION)},
                 {"sharding", plugin(CIUIC_KIND_SHARDING)},
                 {"communicator", plugin(CIUIC_KIND_COMMUNICATOR)},
                 {"parameters", count_parameters(plan.model)},
                 {"active_parameters", count_active_parameters(plan.model)},
                 {"tokens_per_step", last_.tokens},
                 {"sequence_tokens", last_.row_tokens},
                 {"warmup_steps", request_.warmup},
                 {"timed_steps", request_.steps}};
  json["tokens_per_second"] = {{"median", last_.tokens / median},
                               {"p10", last_.tokens / quantile(seconds_, 0.9)},
                               {"p90", last_.tokens / quantile(seconds_, 0.1)}};
  json["step_seconds"] = {{"median", median},
                          {"p10", quantile(seconds_, 0.1)},
                          {"p90", quantile(seconds_, 0.9)},
                          {"mean", mean},
                          {"all", seconds_}};
  json["gemm"] = {{"dtype", c10::toString(activation_of(session))},
                  {"sizes", GemmRate::kSizes},
                  {"before", before_.flops_per_second},
                  {"after", after_.flops_per_second},
                  {"flops_per_second", gemm},
                  {"own_products", own_.flops_per_second},
                  {"own_flops_per_second", sums.own_gemm}};
  const double flops = flops_per_token(plan.model, last_.row_tokens) * last_.tokens;
  json["model"] = {{"flops_per_token", flops / last_.tokens},
                   {"flops_per_second", flops / median},
                   {"fraction_of_gemm_rate", flops / median / gemm}};

  Json phases;
  double communication = 0;
  const std::pair<Phase, const char*> named[] = {{Phase::Data, "data"},
                                                 {Phase::Forward, "forward"},
                                                 {Phase::Backward, "backward"},
                                                 {Phase::Optimizer, "optimizer"},
                                                 {Phase::Rest, "rest"}};
  for (const auto& [phase, name] : named) {
    const double waited = seconds(phase, Part::Communication);
    phases[name] = sum(sums.sheet[static_cast<size_t>(phase)]) / steps / world - waited;
    communication += waited;
  }
  phases["communication"] = communication;
  json["phase_seconds"] = phases;

  const auto flops_of = module_flops(plan.model, last_.row_tokens);
  Json modules = Json::array();
  for (size_t i = 0; i < kNumParts; ++i) {
    const auto part = static_cast<Part>(i);
    const double forward = seconds(Phase::Forward, part);
    const double backward = seconds(Phase::Backward, part);
    if (part == Part::Communication || forward + backward == 0) {
      continue;
    }
    const double step_flops = flops_of[i] * last_.tokens / world;
    modules.push_back(
        {{"name", kPartNames[i]},
         {"forward_seconds", forward},
         {"backward_seconds", backward},
         {"forward_flops", step_flops / 3},
         {"backward_flops", step_flops * 2 / 3},
         {"fraction_of_gemm_rate", step_flops / (forward + backward) / (gemm / world)}});
  }
  json["modules"] = modules;
  json["tensor_storage"] = per_step(storage_, steps);
  json["plugin_memory"] = per_step(host_memory_, steps);
  json["page_faults_per_step"] = static_cast<double>(page_faults_) / steps;
  double peak = 0;
  for (const double p : sums.peaks) {
    peak += p;
  }
  json["peak_rss_bytes"] = {{"sum", peak}, {"ranks", sums.peaks}};
  json["startup"] = Json::parse(startup.json());
  return json.dump(2) + "\n";
}

}  // namespace ciuic::core
