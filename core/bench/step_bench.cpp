// SPDX-License-Identifier: MIT
#include "core/bench/step_bench.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sys/resource.h>
#include <utility>

#include <ATen/Parallel.h>

#include "core/bench/copy_rate.h"
#include "core/bench/module_flops.h"
#include "core/bench/module_traffic.h"
#include "core/bench/peak_memory.h"
#include "core/launch/startup_clock.h"
#include "core/log/failure.h"
#include "core/memory/tensor_arena.h"
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

ElementBytes bytes_of_elements(const Session& session) {
  const auto bytes = [&](int32_t role) {
    return static_cast<double>(dtype_bytes(session.precision().dtype_for("model", role)));
  };
  return {bytes(CIUIC_ROLE_VALUE), bytes(CIUIC_ROLE_GRAD), bytes(CIUIC_ROLE_ACTIVATION)};
}

/// On all ranks at the same time, as in a step: they share the machine.
template <typename Measure>
auto at_once(Session& session, const char* what, const Measure& measure) {
  barrier(session.control(), what);
  const auto found = measure();
  barrier(session.control(), what);
  return found;
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

/// The system is asked only when the arena grows, and gets nothing back.
Json storage_per_step(const BlockPool::Counts& before, const BlockPool::Counts& after,
                      double steps) {
  const auto mean = [&](int64_t BlockPool::Counts::*member) {
    return static_cast<double>(after.*member - before.*member) / steps;
  };
  return {{"system_allocations_per_step", mean(&BlockPool::Counts::growths)},
          {"system_bytes_per_step", mean(&BlockPool::Counts::held_bytes)},
          {"arena_blocks_per_step", mean(&BlockPool::Counts::allocations)},
          {"arena_block_bytes_per_step", mean(&BlockPool::Counts::allocated_bytes)},
          {"arena_bytes", after.held_bytes}};
}

}  // namespace

/// What all ranks have together, in one vector, so that it is summed at once.
struct StepBench::Sums {
  explicit Sums(int world) : peaks(static_cast<size_t>(world)) {}

  StepClock::Sheet sheet{};
  double gemm_before = 0, gemm_after = 0, own_gemm = 0, copy_rate = 0;
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
    visit(copy_rate);
    for (double& peak : peaks) {
      visit(peak);
    }
  }
};

StepBench::StepBench(StepBenchRequest request) : request_(std::move(request)) {}

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
  copy_rate_ = at_once(session, "bench: the rate of memory", measure_copy_rate);
  reset_peak_rss();
  arena_before_ = TensorArena::install().counts();
  host_memory_ = host_memory_counts();
  page_faults_ = page_faults();
  StepClock::current = &clock_;
  begin_ = StepClock::Clock::now();
  clock_.take(begin_);
}

GemmRate StepBench::gemm_rate(Session& session, Products products) const {
  return at_once(session, "bench: the GEMM rate",
                 [&] { return measure_gemm_rate(activation_of(session), products); });
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
    arena_ = TensorArena::install().counts();
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
  sums.copy_rate = copy_rate_;
  sums.peaks[static_cast<size_t>(session.identity().rank)] = static_cast<double>(peak_rss_);
  std::vector<double> values;
  sums.each([&](double& value) { values.push_back(value); });
  reduce_in_place(session.control(), values, {}, "bench: sums of all ranks");
  size_t next = 0;
  sums.each([&](double& value) { value = values[next++]; });
  return sums;
}

Json StepBench::run_json(const RunPlan& plan, int world) const {
  const auto plugin = [&](uint32_t kind) { return plan.plugin(kind).found.descriptor->name; };
  return {{"world_size", world},
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
}

/// Of a mean step on a mean rank.
double StepBench::seconds(const Sums& sums, Phase phase, Part part) const {
  return sums.sheet[static_cast<size_t>(phase)][static_cast<size_t>(part)] /
         static_cast<double>(seconds_.size()) / static_cast<double>(sums.peaks.size());
}

double StepBench::mean_seconds(const Sums& sums) const {
  double mean = 0;
  for (size_t phase = 0; phase < sums.sheet.size(); ++phase) {
    for (size_t part = 0; part < kNumParts; ++part) {
      mean += seconds(sums, static_cast<Phase>(phase), static_cast<Part>(part));
    }
  }
  return mean;
}

/// What was waited for in a collective counts as communication, in whichever phase.
Json StepBench::phases_json(const Sums& sums) const {
  Json phases;
  double communication = 0;
  const std::pair<Phase, const char*> named[] = {{Phase::Data, "data"},
                                                 {Phase::Forward, "forward"},
                                                 {Phase::Backward, "backward"},
                                                 {Phase::Optimizer, "optimizer"},
                                                 {Phase::Rest, "rest"}};
  for (const auto& [phase, name] : named) {
    double own = 0;
    for (size_t part = 0; part < kNumParts; ++part) {
      const double spent = seconds(sums, phase, static_cast<Part>(part));
      (static_cast<Part>(part) == Part::Communication ? communication : own) += spent;
    }
    phases[name] = own;
  }
  phases["communication"] = communication;
  return phases;
}

/// `gemm`: of a rank.
Json StepBench::modules_json(const Session& session, const Sums& sums, double gemm) const {
  const ModelConfig& model = session.plan().model;
  const auto flops_of = module_flops(model, last_.row_tokens);
  const double tokens = last_.tokens / static_cast<double>(sums.peaks.size());
  const auto bytes_of =
      least_traffic(model, std::llround(tokens / last_.micro_batches), bytes_of_elements(session));
  Json modules = Json::array();
  for (size_t i = 0; i < kNumParts; ++i) {
    const auto part = static_cast<Part>(i);
    const double forward = seconds(sums, Phase::Forward, part);
    const double backward = seconds(sums, Phase::Backward, part);
    if (part == Part::Communication || forward + backward == 0) {
      continue;
    }
    const double flops = flops_of[i] * tokens;
    modules.push_back({{"name", kPartNames[i]},
                       {"forward_seconds", forward},
                       {"backward_seconds", backward},
                       {"forward_flops", flops / 3},
                       {"backward_flops", flops * 2 / 3},
                       {"fraction_of_gemm_rate", flops / (forward + backward) / gemm},
                       {"least_bytes", bytes_of[i] * last_.micro_batches}});
  }
  return modules;
}

std::string StepBench::report(const Session& session, const Sums& sums,
                              const StartupClock& startup) const {
  const RunPlan& plan = session.plan();
  const int world = session.identity().world;
  const auto steps = static_cast<double>(seconds_.size());
  const double gemm = (sums.gemm_before + sums.gemm_after) / 2;
  const double median = quantile(seconds_, 0.5);
  const double flops = flops_per_token(plan.model, last_.row_tokens) * last_.tokens;
  Json json;
  json["run"] = run_json(plan, world);
  json["tokens_per_second"] = {{"median", last_.tokens / median},
                               {"p10", last_.tokens / quantile(seconds_, 0.9)},
                               {"p90", last_.tokens / quantile(seconds_, 0.1)}};
  json["step_seconds"] = {{"median", median},
                          {"p10", quantile(seconds_, 0.1)},
                          {"p90", quantile(seconds_, 0.9)},
                          {"mean", mean_seconds(sums)},
                          {"all", seconds_}};
  json["gemm"] = {{"dtype", c10::toString(activation_of(session))},
                  {"sizes", GemmRate::kSizes},
                  {"before", before_.flops_per_second},
                  {"after", after_.flops_per_second},
                  {"flops_per_second", gemm},
                  {"own_products", own_.flops_per_second},
                  {"own_flops_per_second", sums.own_gemm}};
  json["memory"] = {{"copy_bytes_per_second", sums.copy_rate / world}};
  json["model"] = {{"flops_per_token", flops / last_.tokens},
                   {"flops_per_second", flops / median},
                   {"fraction_of_gemm_rate", flops / median / gemm}};
  json["phase_seconds"] = phases_json(sums);
  json["modules"] = modules_json(session, sums, gemm / world);
  json["tensor_storage"] = storage_per_step(arena_before_, arena_, steps);
  json["plugin_memory"] = per_step(host_memory_, steps);
  json["page_faults_per_step"] = static_cast<double>(page_faults_) / steps;
  json["peak_rss_bytes"] = {{"sum", std::accumulate(sums.peaks.begin(), sums.peaks.end(), 0.0)},
                            {"ranks", sums.peaks}};
  json["startup"] = Json::parse(startup.json());
  return json.dump(2) + "\n";
}

}  // namespace ciuic::core
