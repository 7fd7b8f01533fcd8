// SPDX-License-Identifier: MIT
//
// A rule keeps no tensor of its own: its state is what state_spec declares, and nothing else carries
// over from one update to the next.
#include <set>
#include <string>

#include "operand.h"
#include "optimizer_host.h"
#include "optimizer_tables.h"

namespace ciuic::testing {
namespace {

RuleStep step_of(uint64_t update) { return {update, 1e-2, 1, 0.5}; }

std::string text_of(const ciuic_state_spec& s) {
  return std::string(to_view(s.name)) + " " + dtype_name(s.dtype) + " granule " +
         std::to_string(s.granule) + " per_granule " + std::to_string(s.per_granule) + " initial " +
         std::to_string(s.initial);
}
void require_same_specs(const std::vector<ciuic_state_spec>& a,
                        const std::vector<ciuic_state_spec>& b, const std::string& when) {
  require(a.size() == b.size(), when + ": state_spec gives " + std::to_string(b.size()) +
                                    " tensors, before " + std::to_string(a.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    require(text_of(a[i]) == text_of(b[i]),
            when + ": state_spec gives " + text_of(b[i]) + ", before " + text_of(a[i]));
  }
}

void spec_is_stable(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  const PluginInstance other = context.create(host);
  Operand o(optimizer, 1003, kPlainLayout, context.seed);
  const std::vector<ciuic_state_spec> first = o.specs;
  std::set<std::string> names;
  for (const ciuic_state_spec& spec : first) {
    require(names.emplace(to_view(spec.name)).second,
            "two state tensors are called " + std::string(to_view(spec.name)));
  }
  require_same_specs(first, state_specs(optimizer, o.param), "asked again");
  (void)o.try_update(optimizer, step_of(1), {{0, o.count()}});
  require_same_specs(first, state_specs(optimizer, o.param), "asked after an update");
  require_same_specs(first, state_specs(other, o.param), "asked of another instance");
  const std::vector<ciuic_state_spec> kept = first;  // the array lives until destroy
  Operand big(optimizer, 5, kPlainLayout, context.seed);
  (void)state_specs(optimizer, big.param);
  for (size_t i = 0; i < kept.size(); ++i) {
    require(to_view(kept[i].name) == to_view(o.specs[i].name), "a state's name did not live on");
  }
}

void granule_is_pure(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  for (const int64_t count : {int64_t{1}, int64_t{64}, int64_t{1003}}) {
    const Operand a(optimizer, count, kPlainLayout, context.seed);
    const Operand b(optimizer, count, kPlainLayout, context.seed + 1);
    require(a.granule == b.granule, "granule of the same parameter: " + std::to_string(a.granule) +
                                        ", asked again " + std::to_string(b.granule));
  }
}

/// State moved to other memory and another instance in the middle of a run, as a restart does.
void state_is_all(const TestContext& context) {
  for_each_layout([&](const Layout& layout) {
    const OptimizerHost host;
    const PluginInstance one = context.create(host);
    const PluginInstance two = context.create(host);
    Operand whole(one, 1003, layout, context.seed);
    Operand moved(two, 1003, layout, context.seed, 3);
    for (uint64_t update = 1; update <= 6; ++update) {
      whole.set_gradients(context.seed + update);
      whole.update(one, step_of(update));
      if (update == 3) {
        moved.value.set_bits(whole.value.bits());
        if (whole.master) {
          moved.master->set_bits(whole.master->bits());
        }
        for (size_t s = 0; s < whole.state.size(); ++s) {
          moved.state[s]->set_bits(whole.state[s]->bits());
        }
      } else if (update > 3) {
        moved.set_gradients(context.seed + update);
        moved.update(two, step_of(update));
      }
    }
    moved.require_same(whole, "3 of 6 updates by another instance, state copied between (" +
                                  text_of(layout) + ")");
  });
}

/// Two parameters through one instance do not disturb each other.
void parameters_are_apart(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance shared = context.create(host);
  const PluginInstance alone = context.create(host);
  Operand a(shared, 300, kPlainLayout, context.seed);
  Operand b(shared, 300, kPlainLayout, context.seed + 1);
  Operand expected(alone, 300, kPlainLayout, context.seed);
  for (uint64_t update = 1; update <= 4; ++update) {
    a.update(shared, step_of(update));
    b.update(shared, step_of(update));
    expected.update(alone, step_of(update));
  }
  a.require_same(expected, "4 updates with another parameter's between");
}

/// The first update starts from the declared initial state and is finite.
void starts_from_initial(const TestContext& context) {
  const OptimizerHost host;
  const PluginInstance optimizer = context.create(host);
  for (const uint64_t update : {uint64_t{1}, uint64_t{1'000'000}}) {
    Operand o(optimizer, 64, kPlainLayout, context.seed);
    o.grad.set(5, 0);
    o.update(optimizer, step_of(update));
    for (int64_t i = 0; i < o.count(); ++i) {
      require(std::isfinite(o.value.at(i)),
              "update " + std::to_string(update) + " on initial state gave " +
                  std::to_string(o.value.at(i)) + " for gradient " + std::to_string(o.grad.at(i)));
    }
  }
}

}  // namespace

TestTable optimizer_state_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_OPTIMIZER;
  return {
      {"optimizer.state.stable", 3, kKind, 20,
       "state_spec says the same whenever it is asked, with unique names", spec_is_stable},
      {"optimizer.state.granule", 3, kKind, 20, "granule is a function of the parameter",
       granule_is_pure},
      {"optimizer.state.carries_all", 3, kKind, 30,
       "a run goes on with the same bits in another instance from values and state alone",
       state_is_all},
      {"optimizer.state.apart", 3, kKind, 20,
       "parameters that share an instance do not disturb each other", parameters_are_apart},
      {"optimizer.state.initial", 3, kKind, 20,
       "update 1, and a late one, are finite on initial state", starts_from_initial},
  };
}

}  // namespace ciuic::testing
