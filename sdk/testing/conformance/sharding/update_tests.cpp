// SPDX-License-Identifier: MIT
//
// What the optimizer is handed: the step's numbers as the header defines them, whole granules, and
// together each element once.
#include <map>
#include <mutex>
#include <string>

#include "sharding_tables.h"
#include "steps.h"

namespace ciuic::testing {
namespace {

Model model_with_factors() {
  Model model = small_model();
  for (size_t i = 0; i < model.size(); ++i) {
    model[i].weight_decay = 0.25 * static_cast<double>(i);
    model[i].lr_scale = 1 + 0.5 * static_cast<double>(i);
  }
  model[3].flags |= CIUIC_PARAM_FROZEN;
  return model;
}

void require_arguments(const SeenUpdate& u, const ModelParam& p, const RuleStep& s) {
  const std::string who = "update of " + u.name + ": ";
  const auto expect = [&](const char* what, double got, double expected) {
    require(got == expected,
            who + what + " is " + std::to_string(got) + ", expected " + std::to_string(expected));
  };
  expect("param.weight_decay", u.param_weight_decay, p.weight_decay);
  expect("param.lr_scale", u.param_lr_scale, p.lr_scale);
  expect("weight_decay, the parameter's times the step's", u.weight_decay,
         p.weight_decay * s.weight_decay);
  expect("lr, the step's times the parameter's lr_scale", u.lr, s.lr * p.lr_scale);
  expect("grad_scale", u.grad_scale, s.grad_scale);
  expect("update", static_cast<double>(u.update), static_cast<double>(s.update));
  expect("seed", static_cast<double>(u.seed), static_cast<double>(1000 + s.update));
  require(!p.is_frozen() && p.tied_to < 0, who + "it is frozen or tied");
  require(u.begin >= 0 && u.num_elements >= 0, who + "a range of negative numbers");
  require(
      u.has_master == p.has_master(),
      who + (u.has_master ? "a master where the value is the master" : "the master is missing"));
}

void arguments(const TestContext& context) {
  for (const bool has_masters : {false, true}) {
    Model model = model_with_factors();
    for (ModelParam& p : model) {
      p.value = has_masters ? kBF16 : kF32;
    }
    for (const int world : {1, 3}) {
      drive(context, world, model, [&](StepDriver& d) {
        for (uint64_t update = 1; update <= 3; ++update) {
          d.run_backward(whole_gradient);
          (void)d.stats();
          d.step(rule_step(update));
          for (const SeenUpdate& u : d.optimizer().take_seen()) {
            require(u.param < model.size(), "update of a parameter that is not in the plan");
            require_arguments(u, model[u.param], rule_step(update));
          }
        }
      });
    }
  }
}

/// Every trained element is updated: by one rank, or by all of its replicas alike.
void every_element(const TestContext& context) {
  const Model model = model_with_factors();
  for (const int world : {1, 2, 3, 4}) {
    std::mutex mutex;
    int64_t updated = 0;
    drive(context, world, model, [&](StepDriver& d) {
      d.run_backward(whole_gradient);
      (void)d.stats();
      d.step(rule_step(1));
      const std::lock_guard<std::mutex> lock(mutex);
      for (const SeenUpdate& u : d.optimizer().take_seen()) {
        updated += u.num_elements;
      }
    });
    int64_t trained = 0;
    for (const ModelParam& p : model) {
      trained += p.is_trained() ? p.num_elements() : 0;
    }
    require(updated % trained == 0 && updated >= trained && updated <= trained * world,
            "all ranks together updated " + std::to_string(updated) + " elements; the model has " +
                std::to_string(trained) + ", each updated once or by " + std::to_string(world) +
                " replicas at most");
  }
}

}  // namespace

TestTable sharding_update_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_SHARDING;
  return {
      {"sharding.update.arguments", 3, kKind, 60,
       "the optimizer gets lr, decay, scale, counter and seed as the header defines them",
       arguments},
      {"sharding.update.elements", 3, kKind, 60,
       "every trained element is updated, by one rank or by its replicas", every_element},
  };
}

}  // namespace ciuic::testing
