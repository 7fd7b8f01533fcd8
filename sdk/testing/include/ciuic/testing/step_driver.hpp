// SPDX-License-Identifier: MIT
//
// Drives one rank's sharding instance through steps as a trainer does: uses in the order that
// begin_step announced, values read and gradients written through the bindings.
//
// Structs that a call is handed end at an inaccessible page and are gone when it returns.
//
//   StepDriver driver(context, rank, model, optimizer);
//   driver.begin(schedule);  driver.backward(use, gradient) ...  driver.end_backward();
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/testing/conformance.hpp>
#include <ciuic/testing/guarded_struct.hpp>
#include <ciuic/testing/model_plan.hpp>
#include <ciuic/testing/reference_optimizer.hpp>

namespace ciuic::testing {

/// What a rank does in a step, use by use.
using Schedule = std::vector<ciuic_use>;

inline ciuic_use make_use(uint32_t unit, uint32_t pass, uint32_t flags = 0,
                          uint32_t micro_batch = 0) {
  return {sizeof(ciuic_use), flags, 0, unit, pass, micro_batch};
}

/// Forward over all units, then backward, for each micro-batch. `is_idle` by micro-batch.
inline Schedule plain_schedule(uint32_t units, const std::vector<bool>& is_idle,
                               bool announces_last = true) {
  Schedule uses;
  for (uint32_t m = 0; m < is_idle.size(); ++m) {
    const uint32_t idle = is_idle[m] ? uint32_t{CIUIC_USE_IDLE} : 0U;
    const bool is_last = announces_last && m + 1 == is_idle.size();
    for (uint32_t u = 0; u < units; ++u) {
      uses.push_back(make_use(u, CIUIC_PASS_FORWARD, idle, m));
    }
    for (uint32_t u = units; u-- > 0;) {
      uses.push_back(make_use(u, CIUIC_PASS_BACKWARD,
                              idle | (is_last ? uint32_t{CIUIC_USE_LAST_GRAD} : 0U), m));
    }
  }
  for (uint32_t i = 0; i < uses.size(); ++i) {
    uses[i].index = i;
  }
  return uses;
}

/// Gradient of element `i` of parameter `param` that a use adds.
using GradientOf = std::function<double(uint64_t param, int64_t i)>;

class StepDriver {
 public:
  /// `optimizer` may be NULL (an evaluation) and outlives this object.
  StepDriver(const TestContext& context, Rank& rank, Model model, ReferenceOptimizer* optimizer,
             bool sets_up = true)
      : rank_(rank), plan_(rank, std::move(model)), optimizer_(optimizer) {
    rank.host.offer("ciuic.optimizer", optimizer == nullptr ? nullptr : optimizer->service());
    instance_.emplace(context.create(rank.host, {}, rank.seat()));
    if (sets_up) {
      check(vt().setup(self(), plan_.c()));
    }
  }
  ~StepDriver() {
    instance_.reset();
    rank_.host.offer("ciuic.optimizer", nullptr);
  }
  StepDriver(const StepDriver&) = delete;
  StepDriver& operator=(const StepDriver&) = delete;

  [[nodiscard]] const ciuic_sharding_vt& vt() const {
    return instance_->table<ciuic_sharding_vt>();
  }
  [[nodiscard]] ciuic_instance* self() const { return instance_->self(); }
  [[nodiscard]] const PluginInstance& instance() const { return *instance_; }
  [[nodiscard]] const ModelPlan& plan() const { return plan_; }
  [[nodiscard]] const Model& model() const { return plan_.model(); }
  [[nodiscard]] Rank& rank() const { return rank_; }
  [[nodiscard]] const ReferenceOptimizer& optimizer() const { return *optimizer_; }
  void check(ciuic_status* status) const { rank_.host.host().check(status); }
  /// The code of what a call returns.
  [[nodiscard]] int32_t code_of(ciuic_status* status) const {
    return status == nullptr ? int32_t{CIUIC_OK} : rank_.host.host().take(status).code();
  }

  // ---- the calls of a step ----

  /// Announces `uses`; with `is_known` false it keeps them to itself.
  void begin(Schedule uses, bool is_known = true, uint32_t flags = 0) {
    check(try_begin(std::move(uses), is_known, flags));
  }
  [[nodiscard]] ciuic_status* try_begin(Schedule uses, bool is_known = true, uint32_t flags = 0) {
    uses_ = std::move(uses);
    uint32_t micro_batches = 1;
    for (const ciuic_use& u : uses_) {
      micro_batches = std::max(micro_batches, u.micro_batch + 1);
    }
    ciuic_step step{};
    step.struct_size = sizeof(step);
    step.flags = flags;
    step.step = step_ + 1;
    step.micro_batches = micro_batches;
    step.first_slot = micro_batches * position_.value_or(static_cast<uint32_t>(rank_.rank()));
    step.num_slots = micro_batches * static_cast<uint32_t>(rank_.world());
    if (is_known) {
      step.uses = to_array(uses_);
    }
    return vt().begin_step(self(), GuardedStruct(step).get());
  }
  /// Which of the world's slots are this rank's: those after `position` other ranks'. Its number, unless
  /// told.
  void set_position(uint32_t position) { position_ = position; }
  /// The bindings stand until the matching drop.
  ArrayView<ciuic_binding> bind(const ciuic_use& u) {
    ciuic_array bindings{};
    ciuic_work* work = nullptr;
    check(vt().bind(self(), GuardedStruct(u).get(), nullptr, &bindings, &work));
    Work(work).wait(rank_.host.host());
    return bindings;
  }
  void drop(const ciuic_use& u) { check(vt().drop(self(), GuardedStruct(u).get(), nullptr)); }
  void ready(const ciuic_use& u) {
    check(vt().grad_ready(self(), GuardedStruct(u).get(), nullptr));
  }
  void end_backward() { check(vt().end_backward(self(), nullptr)); }
  ciuic_grad_stats stats(double grad_scale = 1, uint32_t norm = CIUIC_NORM_L2) {
    ciuic_grad_stats out{};
    check(try_stats(grad_scale, norm, out));
    return out;
  }
  [[nodiscard]] ciuic_status* try_stats(double grad_scale, uint32_t norm, ciuic_grad_stats& out) {
    return try_stats(grad_scale, norm, nullptr, 0, out);
  }
  /// Of `count` parameters; NULL: of all.
  [[nodiscard]] ciuic_status* try_stats(double grad_scale, uint32_t norm, const int64_t* params,
                                        uint32_t count, ciuic_grad_stats& out) {
    ciuic_grad_request request{};
    request.struct_size = sizeof(request);
    request.grad_scale = grad_scale;
    request.norm = norm;
    request.num_params = count;
    request.params = params;
    const GuardedStruct<ciuic_grad_stats> shown;
    ciuic_status* status =
        vt().grad_stats(self(), GuardedStruct(request).get(), nullptr, shown.get());
    out = *shown;
    return status;
  }
  void step(RuleStep s = {}, uint32_t flags = 0) {
    ciuic_work* work = nullptr;
    check(try_step(s, flags, &work));
    Work(work).wait(rank_.host.host());
    ++step_;
  }
  [[nodiscard]] ciuic_status* try_step(RuleStep s, uint32_t flags, ciuic_work** work) {
    ciuic_step_update u{};
    u.struct_size = sizeof(u);
    u.flags = flags;
    u.update = s.update;
    u.seed = 1000 + s.update;
    u.lr = s.lr;
    u.weight_decay_scale = s.weight_decay;
    u.grad_scale = s.grad_scale;
    *work = nullptr;
    return vt().step(self(), GuardedStruct(u).get(), nullptr, work);
  }
  void rollback(int64_t timeout_ns = 10'000'000'000) { check(vt().rollback(self(), timeout_ns)); }
  void load(MemoryState& state) { instance_->load(state); }
  void save(MemoryState& state) { instance_->save(state); }

  // ---- what a layer does ----

  /// What it read of a binding's value.
  static double value_at(const ciuic_binding& b, int64_t i) {
    return load_element(b.value->t.dtype, element_at(*b.value, i));
  }
  /// Writes all of the gradient where it is garbage, adds to it where it is not.
  static void add_gradient(const ciuic_binding& b, const GradientOf& gradient) {
    const bool is_garbage = (b.flags & CIUIC_BINDING_OVERWRITE) != 0;
    for (int64_t i = 0; i < num_elements(*b.grad); ++i) {
      char* at = element_at(*b.grad, i);
      const double old = is_garbage ? 0 : load_element(b.grad->t.dtype, at);
      store_element(b.grad->t.dtype, at, old + gradient(b.param, i));
    }
  }
  /// One use that only reads, or is idle.
  void touch(const ciuic_use& u) {
    (void)bind(u);
    if (u.pass != CIUIC_PASS_FORWARD && u.pass != CIUIC_PASS_RECOMPUTE) {
      ready(u);
    }
    drop(u);
  }
  /// One unit's backward: bind, write, report, drop. An idle use writes nothing.
  void backward(const ciuic_use& u, const GradientOf& gradient) {
    for (const ciuic_binding& b : bind(u)) {
      if (b.grad != nullptr && (u.flags & CIUIC_USE_IDLE) == 0) {
        add_gradient(b, gradient);
      }
    }
    ready(u);
    drop(u);
  }
  /// All uses of a schedule, each backward adding `gradient`.
  void walk(const Schedule& uses, const GradientOf& gradient) {
    for (const ciuic_use& u : uses) {
      if (u.pass == CIUIC_PASS_FORWARD) {
        touch(u);
      } else {
        backward(u, gradient);
      }
    }
  }
  /// begin_step to end_backward with one micro-batch in which every use adds `gradient`.
  void run_backward(const GradientOf& gradient, bool is_idle = false) {
    const Schedule uses = plain_schedule(num_units(model()), {is_idle});
    begin(uses);
    walk(uses, gradient);
    end_backward();
  }

 private:
  Rank& rank_;
  ModelPlan plan_;
  ReferenceOptimizer* optimizer_;
  std::optional<PluginInstance> instance_;
  Schedule uses_;
  std::optional<uint32_t> position_;
  uint64_t step_ = 0;
};

}  // namespace ciuic::testing
