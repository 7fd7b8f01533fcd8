// SPDX-License-Identifier: MIT
//
// What bind shows and how long it stands: order, shapes, values; nested and overlapping binds; and
// steps that only evaluate.
#include <string>

#include "sharding_tables.h"
#include "steps.h"

namespace ciuic::testing {
namespace {

void require_shape(const ciuic_tensor& t, const ModelParam& p, ciuic_dtype dtype,
                   const std::string& what) {
  const std::vector<int64_t> shape(t.t.shape, t.t.shape + t.t.ndim);
  require(shape == p.shape, what + " of " + p.name + " has another shape than the parameter");
  require(same(t.t.dtype, dtype), what + " of " + p.name + " is " + dtype_name(t.t.dtype) +
                                      ", the plan says " + dtype_name(dtype));
  require(p.num_elements() == 0 || t.t.data != nullptr, what + " of " + p.name + " has no memory");
}

/// First values, as the value's type holds them.
void require_first_values(ArrayView<ciuic_binding> bindings, const Model& model,
                          const std::string& when) {
  for (const ciuic_binding& b : bindings) {
    for (int64_t i = 0; i < num_elements(*b.value); ++i) {
      const double got = StepDriver::value_at(b, i);
      const double expected = first_value(storage_of(model, b.param), i);
      require(got == expected, when + ": " + model[b.param].name + "[" + std::to_string(i) +
                                   "]: got " + std::to_string(got) + ", expected " +
                                   std::to_string(expected));
    }
  }
}

void check_views(StepDriver& d, const ciuic_use& u) {
  const Model& model = d.model();
  const ArrayView<ciuic_binding> bindings = d.bind(u);
  size_t n = 0;
  for (uint64_t id = 0; id < model.size(); ++id) {
    if (model[id].unit != u.unit) {
      continue;
    }
    require(n < bindings.size() && bindings[n].param == id,
            "bind of unit " + std::to_string(u.unit) + ": binding " + std::to_string(n) +
                " is not parameter " + std::to_string(id) +
                "; bindings come in the order of the unit's parameters");
    const ciuic_binding& b = bindings[n++];
    require_shape(*b.value, model[id], model[id].value, "the value");
    if (b.grad != nullptr) {
      require(!model[id].is_frozen(), "frozen " + model[id].name + " was bound with a gradient");
      require_shape(*b.grad, model[id], model[id].grad, "the gradient");
    }
    const bool wants =
        u.pass == CIUIC_PASS_BACKWARD && !model[id].is_frozen() && (u.flags & CIUIC_USE_IDLE) == 0;
    require(!wants || b.grad != nullptr || model[id].num_elements() == 0,
            "a backward pass bound " + model[id].name + " without a gradient");
  }
  require(n == bindings.size(), "bind of unit " + std::to_string(u.unit) + " gave " +
                                    std::to_string(bindings.size()) + " bindings for " +
                                    std::to_string(n) + " parameters");
  require_first_values(bindings, model, "bind of unit " + std::to_string(u.unit));
  for (const ciuic_binding& b : bindings) {
    if (b.grad != nullptr) {
      StepDriver::add_gradient(b, whole_gradient);
    }
  }
  if (u.pass == CIUIC_PASS_BACKWARD) {
    d.ready(u);
  }
  d.drop(u);
}

void views(const TestContext& context) {
  Model narrow = TwoLayerNet::model();
  for (ModelParam& p : narrow) {
    p.value = kBF16;
  }
  for (const Model& model : {TwoLayerNet::model(), narrow}) {
    for (const int world : {1, 3}) {
      drive(context, world, model, [&](StepDriver& d) {
        const Schedule uses = plain_schedule(num_units(model), {false, false});
        d.begin(uses);
        for (const ciuic_use& u : uses) {
          check_views(d, u);
        }
        d.end_backward();
        (void)d.stats();
        d.step(rule_step(1), CIUIC_UPDATE_SKIP);
      });
    }
  }
}

/// Binds of one unit nest: the outer ones' bindings stand until their own drop.
void nested(const TestContext& context) {
  const Model model = small_model();
  drive(context, 2, model, [&](StepDriver& d) {
    Schedule uses{make_use(1, CIUIC_PASS_FORWARD), make_use(1, CIUIC_PASS_FORWARD),
                  make_use(1, CIUIC_PASS_FORWARD)};
    for (uint32_t i = 0; i < uses.size(); ++i) {
      uses[i].index = i;
    }
    for (int round = 0; round < 3; ++round) {
      d.begin(uses, true, CIUIC_STEP_EVALUATE);
      const ArrayView<ciuic_binding> outer = d.bind(uses[0]);
      const ArrayView<ciuic_binding> middle = d.bind(uses[1]);
      const ArrayView<ciuic_binding> inner = d.bind(uses[2]);
      require_first_values(inner, model, "the third nested bind");
      d.drop(uses[2]);
      require_first_values(middle, model, "the second bind after the third was dropped");
      d.drop(uses[1]);
      require_first_values(outer, model, "the first bind after two inner ones were dropped");
      d.drop(uses[0]);
    }
  });
}

/// A backward that recomputes inside: the gradient views survive the inner bind.
void recompute(const TestContext& context) {
  const Model model = small_model();
  MemoryState end;
  drive(
      context, 2, model,
      [&](StepDriver& d) {
        Schedule uses;
        for (uint32_t u = num_units(model); u-- > 0;) {
          uses.push_back(make_use(u, CIUIC_PASS_BACKWARD, CIUIC_USE_LAST_GRAD));
          uses.push_back(make_use(u, CIUIC_PASS_RECOMPUTE));
        }
        for (uint32_t i = 0; i < uses.size(); ++i) {
          uses[i].index = i;
        }
        d.begin(uses);
        for (size_t i = 0; i < uses.size(); i += 2) {
          const ArrayView<ciuic_binding> outer = d.bind(uses[i]);
          require_first_values(d.bind(uses[i + 1]), model, "a recompute inside a backward");
          d.drop(uses[i + 1]);
          for (const ciuic_binding& b : outer) {
            StepDriver::add_gradient(b, whole_gradient);
          }
          d.ready(uses[i]);
          d.drop(uses[i]);
        }
        d.end_backward();
        (void)d.stats();
        d.step(rule_step(1));
      },
      &end);
  const GradientOf twice = [](uint64_t p, int64_t i) { return 2 * whole_gradient(p, i); };
  require_updated(end, model, {twice}, "backward with a recompute inside");
}

/// Several units at once, dropped in another order than bound.
void several_units(const TestContext& context) {
  const Model model = small_model();
  drive(context, 3, model, [&](StepDriver& d) {
    Schedule uses;
    for (uint32_t u = 0; u < num_units(model); ++u) {
      uses.push_back(make_use(u, CIUIC_PASS_FORWARD));
      uses.back().index = u;
    }
    d.begin(uses, true, CIUIC_STEP_EVALUATE);
    std::vector<ArrayView<ciuic_binding>> all;
    for (const ciuic_use& u : uses) {
      all.push_back(d.bind(u));
    }
    for (const size_t u : {1U, 3U, 0U, 2U}) {
      require_first_values(all[u], model, "unit " + std::to_string(u) + " with others bound");
      d.drop(uses[u]);
    }
  });
}

/// Evaluation between steps changes nothing and needs no end_backward or step.
void evaluate(const TestContext& context) {
  const Training training(context.seed);
  const auto run = [&](bool evaluates) {
    auto end = std::make_unique<MemoryState>();
    drive(
        context, 2, training.model,
        [&](StepDriver& d) {
          for (uint64_t update = 1; update <= 3; ++update) {
            for (int pass = 0; pass < (evaluates ? 2 : 0); ++pass) {
              Schedule uses;
              for (uint32_t u = 0; u < TwoLayerNet::kUnits; ++u) {
                uses.push_back(make_use(u, CIUIC_PASS_FORWARD));
                uses.back().index = u;
              }
              d.begin(uses, pass == 0, CIUIC_STEP_EVALUATE);
              for (const ciuic_use& u : uses) {
                d.touch(u);
              }
            }
            run_passes(d, training, update);
            (void)d.stats();
            d.step(rule_step(update));
          }
        },
        end.get());
    return end;
  };
  require(*run(true) == *run(false),
          "steps with EVALUATE between training steps changed the result of training");
}

/// Without an optimizer there is no state, but values can be read.
void evaluates_without_optimizer(const TestContext& context) {
  const Model model = TwoLayerNet::model();
  MemoryState start;
  put_first_values(start, model);
  RankGroup ranks(2);
  run_ranks(ranks, [&](Rank& rank) {
    StepDriver d(context, rank, model, nullptr);
    d.load(start);
    for (int step = 0; step < 2; ++step) {
      Schedule uses;
      for (uint32_t u = 0; u < TwoLayerNet::kUnits; ++u) {
        uses.push_back(make_use(u, CIUIC_PASS_FORWARD));
        uses.back().index = u;
      }
      d.begin(uses, true, CIUIC_STEP_EVALUATE);
      for (const ciuic_use& u : uses) {
        require_first_values(d.bind(u), model, "an evaluation without an optimizer");
        d.drop(u);
      }
    }
  });
}

}  // namespace

TestTable sharding_binding_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_SHARDING;
  return {
      {"sharding.bind.views", 3, kKind, 60,
       "bindings have the unit's order, the parameter's shape and type, and the loaded values",
       views},
      {"sharding.bind.nests", 3, kKind, 60,
       "binds of one unit nest: each stands until its own drop", nested},
      {"sharding.bind.recompute", 3, kKind, 60,
       "a recompute inside a backward leaves its gradient views alone", recompute},
      {"sharding.bind.units", 3, kKind, 60,
       "several units are bound at once and dropped in any order", several_units},
      {"sharding.step.evaluate", 3, kKind, 60,
       "steps that only evaluate leave no gradients and change nothing", evaluate},
      {"sharding.step.evaluate_only", 3, kKind, 60, "a run without an optimizer can evaluate",
       evaluates_without_optimizer},
  };
}

}  // namespace ciuic::testing
