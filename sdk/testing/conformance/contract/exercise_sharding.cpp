// SPDX-License-Identifier: MIT
//
// Training steps of a model with two units: a matrix, a vector, and a weight tied to the first.
#include <cmath>
#include <functional>

#include <ciuic/testing/guarded_struct.hpp>
#include <ciuic/testing/model_plan.hpp>
#include <ciuic/testing/step_driver.hpp>

#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

Model small_model() {
  Model model;
  model.push_back({"model.embed.weight", {6, 4}, 0});
  model.push_back({"model.norm.weight", {5}, 1});
  ModelParam tied{"model.head.weight", {6, 4}, 1};
  tied.tied_to = 0;
  model.push_back(tied);
  return model;
}

class ShardingExercise final : public Exercise {
 public:
  ShardingExercise(const TestContext& context, Bench& bench)
      : Exercise(context, bench),
        plan_(bench.keep(std::make_shared<ModelPlan>(bench.rank(), small_model()))) {
    put_first_values(values_, small_model());
  }

  void start(const Instance& s) override {
    const auto& vt = s.table<ciuic_sharding_vt>();
    ciuic_array extents{};
    s.calls().check("plan", [&] { return vt.plan(s.self(), plan_.c(), &extents); });
    s.calls().check("setup", [&] { return vt.setup(s.self(), plan_.c()); });
  }

  void first_values(const Instance& s) override { s.load(values_); }

  std::string round(const Instance& s, uint64_t number) override {
    const Schedule uses = plain_schedule(num_units(plan_.model()), {false});
    begin_step(s, uses, number);
    for (const ciuic_use& use : uses) {
      walk(s, use, number);
    }
    const auto& vt = s.table<ciuic_sharding_vt>();
    s.calls().check("end_backward", [&] { return vt.end_backward(s.self(), nullptr); });
    const std::string norm = grad_stats(s);
    step(s, number);
    MemoryState state;
    s.save(state);
    std::string results = norm;
    for (const auto& [key, entry] : state.entries()) {
      results += key + ":" + std::string(entry.data.begin(), entry.data.end());
    }
    return results;
  }

  void give_up(const Instance& s) override {
    const auto& vt = s.table<ciuic_sharding_vt>();
    try {
      s.calls().check("rollback", [&] { return vt.rollback(s.self(), 10'000'000'000); });
    } catch (const Error&) {
      return;  // what it rolls back from may be what failed
    }
  }

 private:
  static void begin_step(const Instance& s, const Schedule& uses, uint64_t number) {
    const auto& vt = s.table<ciuic_sharding_vt>();
    ciuic_step step{};
    step.struct_size = sizeof(step);
    step.step = number + 1;
    step.micro_batches = 1;
    step.num_slots = 1;
    step.uses = to_array(uses);
    const GuardedStruct<ciuic_step> guarded(step);
    s.calls().check("begin_step", [&] { return vt.begin_step(s.self(), guarded.get()); });
  }
  void walk(const Instance& s, const ciuic_use& plain_use, uint64_t number) const {
    const auto& vt = s.table<ciuic_sharding_vt>();
    const GuardedStruct<ciuic_use> use(plain_use);
    ciuic_array bindings{};
    ciuic_work* work = nullptr;
    s.calls().check("bind",
                    [&] { return vt.bind(s.self(), use.get(), nullptr, &bindings, &work); });
    s.calls().finish(work, context_.patience);
    const bool is_backward = use->pass == CIUIC_PASS_BACKWARD;
    for (const ciuic_binding& b : ArrayView<ciuic_binding>(bindings)) {
      if (is_backward && b.grad != nullptr) {
        StepDriver::add_gradient(b, [&](uint64_t param, int64_t i) {
          return std::sin(static_cast<double>(param * 7 + static_cast<uint64_t>(i) + number));
        });
      }
    }
    if (is_backward) {
      s.calls().check("grad_ready", [&] { return vt.grad_ready(s.self(), use.get(), nullptr); });
    }
    s.calls().check("drop", [&] { return vt.drop(s.self(), use.get(), nullptr); });
  }
  static std::string grad_stats(const Instance& s) {
    const auto& vt = s.table<ciuic_sharding_vt>();
    const GuardedStruct<ciuic_grad_request> request(
        ciuic_grad_request{sizeof(ciuic_grad_request), 0, 1.0, CIUIC_NORM_L2, 0, nullptr});
    const GuardedStruct<ciuic_grad_stats> stats;
    s.calls().check("grad_stats",
                    [&] { return vt.grad_stats(s.self(), request.get(), nullptr, stats.get()); });
    return bytes_of(&stats->norm, sizeof(stats->norm));
  }
  void step(const Instance& s, uint64_t number) const {
    const auto& vt = s.table<ciuic_sharding_vt>();
    ciuic_step_update u{};
    u.struct_size = sizeof(u);
    u.update = number + 1;
    u.seed = context_.seed + number;
    u.lr = 0.01;
    u.weight_decay_scale = 1;
    u.grad_scale = 1;
    const GuardedStruct<ciuic_step_update> update(u);
    ciuic_work* work = nullptr;
    s.calls().check("step", [&] { return vt.step(s.self(), update.get(), nullptr, &work); });
    s.calls().finish(work, context_.patience);
  }

  ModelPlan& plan_;
  MemoryState values_;
};

}  // namespace

std::unique_ptr<Exercise> exercise_sharding(const TestContext& context, Bench& bench) {
  return std::make_unique<ShardingExercise>(context, bench);
}

}  // namespace ciuic::testing::contract
