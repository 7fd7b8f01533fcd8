// SPDX-License-Identifier: MIT
#include "core/train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <c10/core/InferenceMode.h>
#include <nlohmann/json.hpp>

#include <ciuic/name_pattern.hpp>

#include "core/bench/step_clock.h"
#include "core/parallel/collective.h"
#include "core/train/bad_pass.h"
#include "core/train/process_memory.h"
#include "core/train/run_line.h"
#include "core/train/stop_request.h"
#include "core/train/stopwatch.h"

namespace ciuic::core {
namespace {

using Clock = std::chrono::steady_clock;

/// Whole rows that fill a micro-batch of the plan, whose own may be shorter.
int64_t rows_of(const BatchPlan& plan, int64_t sequence_tokens) {
  int64_t rows = 1;
  for (const ciuic_batch_item& item : plan.items) {
    rows = std::max(rows, int64_t{item.row} + 1);
  }
  return std::max<int64_t>(1, rows * plan.row_tokens / sequence_tokens);
}

std::vector<bool> idle_of(const std::vector<MicroBatch>& batches) {
  std::vector<bool> idle;
  for (const MicroBatch& batch : batches) {
    idle.push_back(batch.is_idle());
  }
  return idle;
}

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

uint32_t norm_named(const std::string& name) {
  return name == "l1" ? CIUIC_NORM_L1 : name == "max" ? CIUIC_NORM_MAX : CIUIC_NORM_L2;
}

/// The ids of the parameters that each of optimizer.gradient_norms matches.
std::vector<std::vector<int64_t>> norm_groups_of(const Session& session) {
  std::vector<std::vector<int64_t>> groups;
  for (const std::string& pattern : session.plan().config.optimizer.gradient_norms) {
    std::vector<int64_t>& group = groups.emplace_back();
    for (const ciuic_param& p : session.parameters()) {
      if (matches_pattern(pattern, to_view(p.name))) {
        group.push_back(static_cast<int64_t>(p.id));
      }
    }
  }
  return groups;
}

/// What is summed over all slots of a step.
SlotSums::Values sums_of(const PassResult& pass, const RouterTerms& terms) {
  return {
      pass.loss_sum, static_cast<double>(pass.tokens), terms.balance,
      terms.z,       pass.prediction_loss_sum,         static_cast<double>(pass.predicted_tokens)};
}

}  // namespace

/// What a step found out, on its way from the passes to the metrics line.
struct Trainer::StepResult {
  uint64_t step = 0;
  uint64_t planned_tokens = 0;
  uint64_t samples = 0;
  uint32_t row_tokens = 0;
  uint32_t micro_batches = 1;
  SchedulePosition position;
  SlotSums sums;
  double loss_sum = 0;
  double tokens = 0;
  Objective objective;
  RouterTerms router_terms;  // sums over tokens
  double prediction_loss_sum = 0;
  double predicted_tokens = 0;
  double learning_rate = 0;
  double loss_scale = 1;
  double next_loss_scale = 1;
  double grad_norm = 0;
  double grad_norm_clipped = 0;
  std::vector<double> grad_norms;  // of optimizer.gradient_norms
  bool is_bad = false;             // the loss or a gradient is not finite
  bool is_skipped = false;         // bad, or without a single token that counts
  std::string cause;               // of a bad step: which tensor
  int32_t bad_rank = -1;
  std::optional<BadPass> bad_pass;  // this rank's first; once agreed, the run's
  bool should_stop = false;
  bool should_save = false;
  double rss_bytes = 0;
  Clock::time_point begin = Clock::now();
  double seconds = 0;
  double data_seconds = 0;
  double optimizer_seconds = 0;
  PassSeconds passes;
  CommClock::Seconds communication;

  [[nodiscard]] double loss() const { return loss_sum / tokens; }
  /// All terms: finite only if each is.
  [[nodiscard]] double objective_sum() const {
    return loss_sum + router_terms.balance + router_terms.z + prediction_loss_sum;
  }
};

Trainer::Trainer(Session& session, const RunFolder& folder, MetricsFile* metrics, uint64_t attempt,
                 TrainState start, const TrainerOptions& options)
    : session_(session),
      folder_(folder),
      metrics_(metrics),
      attempt_(attempt),
      state_(std::move(start)),
      binder_(session.sharding(), session.model()),
      passes_(session.model(), binder_, session.events(),
              {recompute_named(session.plan().config.run.recompute),
               static_cast<uint64_t>(session.plan().config.run.seed)}),
      checkpointing_(session, folder),
      first_plan_(plan_step(1)),
      schedules_(
          session.plan().config,
          planned_course(session.plan(), session.scheduler(),
                         first_request(session.plan(), session.identity().world), first_plan_)),
      total_steps_(schedules_.course.total_steps()),
      norm_groups_(norm_groups_of(session)),
      progress_(Progress::choose(session.is_first(), options.is_quiet, options.steps_on_lines),
                state_.step, total_steps_),
      observer_(options.observer),
      startup_(options.startup),
      // One row a micro-batch where nothing may hang on which rows come together on a rank.
      validation_(load_validation(
          session.data(), session.identity().rank, session.identity().world,
          is_any_world() ? 1 : rows_of(first_plan_, session.data().sequence_tokens()))) {
  state_.numerics = numerics_of(session);
}

ExitCode Trainer::run() {
  if (session_.is_first()) {
    write_run_line();
  }
  if (state_.step >= total_steps_) {
    progress_.note("this run is finished: " + std::to_string(state_.step) + " of " +
                   std::to_string(total_steps_) + " steps");
    return ExitCode::Done;
  }
  for (const std::string& phase : schedules_.unused_phases()) {
    warn(phase);
  }
  validate(state_.step == 0);
  if (startup_ != nullptr && last_validated_ == state_.step) {
    startup_->lap("validation");
  }
  while (has_more_steps()) {
    const TrainState before = state_;
    StepResult result = train_step();
    result.should_save = checkpointing_.is_due(before, state_);
    agree_on(result);
    update(result);
    report(result);
    judge(result);
    if (observer_ != nullptr) {
      observer_->end_step({result.step, result.tokens, result.row_tokens, result.micro_batches});
    }
    validate(is_validation_due(before));
    const bool is_last = state_.step == total_steps_;
    const bool never = session_.plan().config.checkpoint.every.unit == Interval::Unit::Never;
    const bool is_saved_to_go_on = result.should_stop && observer_ == nullptr;
    const bool is_saved = result.should_save || is_saved_to_go_on || (is_last && !never);
    if (is_saved) {
      checkpointing_.save(state_, session_.data().epoch_of_sample(state_.samples));
    }
    if (result.should_stop && !is_last) {
      progress_.note("stopped on request at step " + std::to_string(state_.step) +
                     (is_saved ? "; the same command goes on from there" : ""));
      return ExitCode::Stopped;
    }
  }
  return ExitCode::Done;
}

bool Trainer::has_more_steps() {
  return state_.step < total_steps_ && (observer_ == nullptr || observer_->begin_step(session_));
}

BatchPlan Trainer::plan_step(uint64_t step) const {
  ciuic_batch_request request = first_request(session_.plan(), session_.identity().world);
  request.step = step;
  request.consumed_samples = step == 1 ? 0 : state_.samples;
  request.consumed_tokens = step == 1 ? 0 : state_.tokens;
  request.epoch = session_.data().epoch_of_sample(request.consumed_samples);
  request.only_rank = session_.identity().rank;
  return session_.scheduler().plan(request);
}

Trainer::StepResult Trainer::train_step() {
  session_.comm_clock()
      .take();  // what came between two steps, a checkpoint for example, is not this one's
  StepResult result;
  result.step = state_.step + 1;
  session_.events().begin_step(result.step, attempt_);
  const BatchPlan plan = plan_step(result.step);
  run_passes(plan, result);
  state_.step = result.step;
  state_.samples += plan.samples;
  return result;
}

bool Trainer::is_any_world() const { return session_.plan().config.run.is_any_world(); }

/// This rank's micro-batches in the order of its slots.
std::vector<MicroBatch> Trainer::load(const BatchPlan& plan, const StepSlots& slots,
                                      StepResult& result) const {
  const auto begin = Clock::now();
  const PhaseSpan phase(Phase::Data);
  const Span span(session_.events(), CIUIC_CATEGORY_DATA, "data");
  std::vector<MicroBatch> planned =
      load_micro_batches(plan, session_.identity().rank, session_.data());
  std::vector<MicroBatch> ordered;
  for (const uint32_t m : slots.order()) {
    ordered.push_back(std::move(planned[m]));
  }
  result.data_seconds = seconds_since(begin);
  return ordered;
}

void Trainer::run_passes(const BatchPlan& plan, StepResult& result) {
  const StepSlots slots(is_any_world(), plan.micro_batches, session_.identity().rank,
                        session_.identity().world);
  const std::vector<MicroBatch> batches = load(plan, slots, result);
  ciuic_step step{};
  step.struct_size = sizeof(step);
  step.step = result.step;
  step.flags = is_any_world() ? CIUIC_STEP_ANY_WORLD : 0;
  step.micro_batches = plan.micro_batches;
  step.num_slots = slots.count();
  step.first_slot = slots.first();
  binder_.begin_step(step, training_walk(session_.model(), idle_of(batches)));

  // Divided by the planned tokens here, and in update() by how many really counted: the same unless
  // targets are ignored.
  result.planned_tokens = plan.tokens;
  result.samples = plan.samples;
  result.row_tokens = plan.row_tokens;
  result.micro_batches = plan.micro_batches;
  result.position = {static_cast<double>(state_.updates + 1),
                     static_cast<double>(state_.update_tokens + plan.tokens)};
  result.loss_scale = session_.precision().loss_scale();
  result.objective = schedules_.objective.at(result.position);
  result.objective.seed = result.loss_scale / static_cast<double>(plan.tokens);
  result.sums = SlotSums(is_any_world(), slots);
  for (uint32_t m = 0; m < plan.micro_batches; ++m) {
    const PassResult pass =
        passes_.train(batches[m], m, m + 1 == plan.micro_batches, result.objective, result.passes);
    result.sums.add(m, sums_of(pass, session_.model().take_router_terms()));
    if (!pass.is_finite && !result.bad_pass) {
      result.bad_pass = BadPass{session_.identity().rank, slots.order()[m]};
    }
  }
  const PhaseSpan phase(Phase::Backward);
  const PartSpan part(Part::Sharding);
  session_.sharding().end_backward();
}

void Trainer::agree_on(StepResult& result) {
  const int world = session_.identity().world;
  std::array<double, 4> maxima{static_cast<double>(resident_bytes()),
                               StopRequest::is_raised() ? 1.0 : 0.0, result.should_save ? 1.0 : 0.0,
                               BadPass::vote(result.bad_pass, world)};
  reduce_in_place(session_.control(), result.sums.values(), maxima, "loss and votes");
  const SlotSums::Values sums = result.sums.total();
  result.loss_sum = sums[0];
  result.tokens = sums[1];
  result.router_terms = {sums[2], sums[3]};
  result.prediction_loss_sum = sums[4];
  result.predicted_tokens = sums[5];
  result.rss_bytes = maxima[0];
  result.should_stop = maxima[1] > 0;
  result.should_save = maxima[2] > 0;
  result.bad_pass = BadPass::elected(maxima[3], world);
  state_.tokens += static_cast<uint64_t>(result.tokens);
}

void Trainer::update(StepResult& result) {
  const auto begin = Clock::now();
  const PhaseSpan phase(Phase::Optimizer);
  const Span span(session_.events(), CIUIC_CATEGORY_OPTIMIZER, "optimizer");
  const RunConfig& config = session_.plan().config;
  const bool has_tokens = result.tokens > 0;
  const double grad_scale =
      has_tokens ? static_cast<double>(result.planned_tokens) / (result.tokens * result.loss_scale)
                 : 0.0;
  const ciuic_grad_stats stats =
      session_.sharding().grad_stats(grad_scale, norm_named(config.optimizer.gradient_norm));
  result.grad_norms = norms_of_groups(grad_scale);
  result.is_bad = stats.non_finite != 0 || !std::isfinite(result.objective_sum());
  result.cause = result.is_bad ? cause_of(stats) : std::string();
  result.bad_rank = result.bad_pass         ? result.bad_pass->rank
                    : stats.non_finite != 0 ? stats.first_bad_rank
                                            : -1;
  result.grad_norm = stats.non_finite != 0 ? std::nan("") : stats.norm;

  const double max_norm = schedules_.gradient_clip_norm.at(result.position);
  const double clip = max_norm > 0 ? std::min(1.0, max_norm / (stats.norm + 1e-6)) : 1.0;
  result.grad_norm_clipped = result.grad_norm * clip;
  result.is_skipped = result.is_bad || !has_tokens;
  result.learning_rate = schedules_.learning_rate.at(result.position);

  ciuic_step_update step{};
  step.struct_size = sizeof(step);
  step.flags = result.is_skipped ? CIUIC_UPDATE_SKIP : 0;
  step.update = state_.updates + 1;
  step.seed = static_cast<uint64_t>(config.run.seed);
  step.lr = result.learning_rate;
  step.weight_decay_scale = 1.0;
  step.grad_scale = grad_scale * clip;
  session_.sharding().step(step);
  ciuic_precision_update seen{};
  seen.struct_size = sizeof(seen);
  seen.step = result.step;
  seen.update = result.is_skipped ? state_.updates : state_.updates + 1;
  seen.non_finite = stats.non_finite;
  seen.grad_norm = stats.norm;
  session_.precision().update(seen);
  result.next_loss_scale = session_.precision().loss_scale();
  if (result.is_skipped) {
    ++state_.skipped_steps;
    session_.model().reset_expert_loads();
  } else {
    update_expert_bias(schedules_.expert_bias_rate.at(result.position));
    ++state_.updates;
    state_.update_tokens += result.planned_tokens;
  }
  result.optimizer_seconds = seconds_since(begin);
  result.seconds = seconds_since(result.begin);
  result.communication = session_.comm_clock().take();
}

std::vector<double> Trainer::norms_of_groups(double grad_scale) const {
  const OptimizerSection& section = session_.plan().config.optimizer;
  std::vector<double> norms;
  for (const std::vector<int64_t>& params : norm_groups_) {
    const ciuic_grad_stats stats =
        session_.sharding().grad_stats(grad_scale, norm_named(section.gradient_norm), &params);
    norms.push_back(stats.non_finite != 0 ? std::nan("") : stats.norm);
  }
  return norms;
}

std::string Trainer::cause_of(const ciuic_grad_stats& stats) const {
  if (stats.non_finite == 0) {
    return "the loss is not finite";
  }
  // Ranks with other experts count the same parameters by other names.
  const std::vector<ParameterSpec> specs = parameter_specs(
      session_.plan().model, session_.expert_share(std::max(stats.first_bad_rank, 0)));
  const bool is_named = stats.first_bad_param < specs.size();
  const std::string of = is_named ? " of " + specs[stats.first_bad_param].name : "";
  return "the gradient" + of + " is not finite (" + std::to_string(stats.non_finite) +
         " elements in all)";
}

/// " on rank 1, first in its micro-batch 0", as far as it is known.
std::string Trainer::place_of(const StepResult& result) {
  std::string text;
  if (result.bad_rank >= 0) {
    text += " on rank " + std::to_string(result.bad_rank);
  }
  if (result.bad_pass) {
    text += ", first in its micro-batch " + std::to_string(result.bad_pass->micro_batch);
  }
  return text;
}

/// Says why a step was skipped; too many bad ones in a row end the run, as does a bad last one.
void Trainer::judge(const StepResult& result) {
  if (!result.is_skipped) {
    skipped_in_a_row_ = 0;
    return;
  }
  const std::string step = "step " + std::to_string(result.step) + " is skipped: ";
  if (!result.is_bad) {
    warn(step + "none of its targets counts; weights and schedules stay as they are");
    return;
  }
  const bool is_scaled_down = result.next_loss_scale < result.loss_scale;
  skipped_in_a_row_ += is_scaled_down ? 0 : 1;
  const auto limit = static_cast<uint64_t>(session_.plan().config.optimizer.max_skipped_steps);
  const bool is_last = state_.step == total_steps_;
  if (skipped_in_a_row_ > limit || (is_last && !is_scaled_down)) {
    throw bad_numbers(result);
  }
  warn(step + result.cause + place_of(result) +
       (is_scaled_down
            ? "; the loss scale falls to " + text_of(result.next_loss_scale)
            : "; skipped in a row: " + std::to_string(skipped_in_a_row_) + " of at most " +
                  std::to_string(limit) + " (optimizer.max_skipped_steps)"));
}

Failure Trainer::bad_numbers(const StepResult& result) const {
  std::string what = result.cause;
  if (skipped_in_a_row_ > 1) {
    what += ", " + std::to_string(skipped_in_a_row_) + " steps in a row";
  }
  Failure failure(ExitCode::Numbers, what,
                  "lower the learning rate, or go on from an earlier checkpoint; --debug numbers "
                  "names the module where it begins");
  failure.with("step", std::to_string(result.step));
  if (result.bad_rank >= 0) {
    failure.with("rank", std::to_string(result.bad_rank));
  }
  if (result.bad_pass) {
    failure.with("micro_batch", std::to_string(result.bad_pass->micro_batch));
  }
  return failure;
}

/// Once for all ranks.
void Trainer::warn(const std::string& text) const {
  if (session_.is_first()) {
    session_.log().warn(text);
  }
}

void Trainer::update_expert_bias(double rate) {
  const c10::InferenceMode no_autograd;
  Model& model = session_.model();
  at::Tensor loads = model.expert_loads();
  if (loads.numel() > 0 && rate != 0) {
    sum_in_place(session_.control(),
                 std::span(loads.mutable_data_ptr<int64_t>(), static_cast<size_t>(loads.numel())),
                 "expert loads");
    model.update_expert_bias(loads, rate);
  }
  model.reset_expert_loads();
}

void Trainer::report(const StepResult& r) {
  StartupClock* const startup = std::exchange(startup_, nullptr);
  if (startup != nullptr) {
    startup->lap("first_step");
  }
  const double tokens_per_second = r.tokens / r.seconds;
  progress_.step({r.step, r.loss(), r.learning_rate, r.grad_norm, tokens_per_second, r.seconds});
  const auto extra = session_.events().take_fields();
  if (metrics_ == nullptr) {
    return;
  }
  JsonLine line("step");
  line.add("step", r.step)
      .add("attempt", attempt_)
      .add("tokens", state_.tokens)
      .add("loss", r.loss())
      .add("learning_rate", r.learning_rate)
      .add("grad_norm", r.grad_norm)
      .add("grad_norm_clipped", r.grad_norm_clipped)
      .add("loss_scale", r.loss_scale)
      .add("skipped_steps", state_.skipped_steps)
      .add("step_seconds", r.seconds)
      .add("tokens_per_second", tokens_per_second)
      .add("forward_seconds", r.passes.forward)
      .add("backward_seconds", r.passes.backward)
      .add("optimizer_seconds", r.optimizer_seconds)
      .add("communication_seconds", r.communication.busy)
      .add("communication_exposed_seconds", r.communication.exposed)
      .add("data_seconds", r.data_seconds)
      .add("rss_bytes", static_cast<int64_t>(r.rss_bytes))
      .add("device_memory_bytes", int64_t{0});
  add_group_norms(r, line);
  add_terms(r, line);
  add_scheduled(r, line);
  if (startup != nullptr) {
    line.add_raw("startup", startup->json());
  }
  for (const auto& [name, value] : extra) {
    line.add(name, value);
  }
  metrics_->write(line);
}

void Trainer::add_group_norms(const StepResult& r, JsonLine& line) const {
  nlohmann::json norms = nlohmann::json::object();
  for (size_t i = 0; i < r.grad_norms.size(); ++i) {
    norms[session_.plan().config.optimizer.gradient_norms[i]] = r.grad_norms[i];
  }
  if (!norms.empty()) {
    line.add_raw("grad_norms", norms.dump());
  }
}

/// Terms of the objective that this run has; balance and z with their weights in them.
void Trainer::add_terms(const StepResult& r, JsonLine& line) const {
  if (r.objective.has_balance()) {
    line.add("balance_loss", r.router_terms.balance / r.tokens);
  }
  if (r.objective.router_z != 0) {
    line.add("router_z_loss", r.router_terms.z / r.tokens);
  }
  if (session_.model().num_depths() > 0) {
    line.add("mtp_loss", r.prediction_loss_sum / r.predicted_tokens);
  }
}

/// Values that this run's schedules and batch scheduler vary, as the step used them.
void Trainer::add_scheduled(const StepResult& r, JsonLine& line) const {
  if (!schedules_.course.is_constant()) {
    line.add("batch_sequences", r.samples).add("sequence_tokens", int64_t{r.row_tokens});
  }
  for (const auto& [key, schedule] : schedules_.all()) {
    if (schedule->varies() && key != "learning_rate") {
      line.add(key, schedule->at(r.position));
    }
  }
}

bool Trainer::is_validation_due(const TrainState& before) const {
  if (state_.step == total_steps_) {
    return true;
  }
  const Interval every = session_.plan().config.validation.every;
  switch (every.unit) {
    case Interval::Unit::Steps:
      return state_.step % static_cast<uint64_t>(every.count) == 0;
    case Interval::Unit::Epochs: {
      const auto rows =
          static_cast<uint64_t>(session_.data().train_rows()) * static_cast<uint64_t>(every.count);
      return before.samples / rows != state_.samples / rows;
    }
    default:
      return false;
  }
}

void Trainer::validate(bool is_due) {
  if (!is_due || validation_.empty() || last_validated_ == state_.step) {
    return;
  }
  last_validated_ = state_.step;
  const Span span(session_.events(), CIUIC_CATEGORY_FORWARD, "validation");
  ciuic_step step{};
  step.struct_size = sizeof(step);
  step.flags = CIUIC_STEP_EVALUATE;
  step.step = state_.step;
  step.micro_batches = static_cast<uint32_t>(validation_.size());
  binder_.begin_step(step, evaluation_walk(session_.model(), idle_of(validation_)));
  // Slots in the order of the rows, which is the same at every world size.
  const auto world = static_cast<uint32_t>(session_.identity().world);
  const auto rank = static_cast<uint32_t>(session_.identity().rank);
  SlotSums slot_sums(is_any_world(),
                     StepSlots(false, step.micro_batches, 0, session_.identity().world));
  for (uint32_t m = 0; m < validation_.size(); ++m) {
    slot_sums.add(m * world + rank, sums_of(passes_.evaluate(validation_[m], m), {}));
  }
  reduce_in_place(session_.control(), slot_sums.values(), {}, "validation loss");
  const SlotSums::Values sums = slot_sums.total();
  const double loss = sums[0] / sums[1];
  if (metrics_ != nullptr) {
    metrics_->write(JsonLine("validation")
                        .add("step", state_.step)
                        .add("loss", loss)
                        .add("tokens", static_cast<int64_t>(sums[1])));
  }
  char text[96];
  std::snprintf(text, sizeof(text), "validation at step %llu: loss %.4f",
                static_cast<unsigned long long>(state_.step), loss);
  progress_.note(text);
  session_.comm_clock().take();
}

void Trainer::write_run_line() {
  metrics_->write(run_line(session_, {attempt_, total_steps_, state_.step}));
  metrics_->mark_begun();
}

}  // namespace ciuic::core
