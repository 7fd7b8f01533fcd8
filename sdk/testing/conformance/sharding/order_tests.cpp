// SPDX-License-Identifier: MIT
//
// Calls out of order end in PRECONDITION: not in a crash, and not in a step on half a gradient.
#include <string>

#include "sharding_tables.h"
#include "steps.h"

namespace ciuic::testing {
namespace {

void require_refused(const StepDriver& d, ciuic_status* status, const std::string& what) {
  const int32_t code = d.code_of(status);
  require(code == CIUIC_PRECONDITION, what + ": " + code_name(code) +
                                          ", expected PRECONDITION: the order of calls is create, "
                                          "plan, setup, state_load, { begin_step, (bind, drop | "
                                          "grad_ready)*, end_backward, grad_stats, step }*");
}

ciuic_status* try_bind(const StepDriver& d, const ciuic_use& u) {
  ciuic_array bindings{};
  ciuic_work* work = nullptr;
  ciuic_status* status = d.vt().bind(d.self(), &u, nullptr, &bindings, &work);
  require(status == nullptr || work == nullptr, "a bind that failed left a work behind");
  return status;
}
ciuic_status* try_step(StepDriver& d) {
  ciuic_work* work = nullptr;
  ciuic_status* status = d.try_step(rule_step(1), 0, &work);
  if (status == nullptr && work != nullptr) {
    status = work->ops->wait(work, -1);
    work->ops->release(work);
  }
  return status;
}
ciuic_status* try_stats(StepDriver& d) {
  ciuic_grad_stats s{};
  return d.try_stats(1, CIUIC_NORM_L2, s);
}

void before_setup(const TestContext& context) {
  RankGroup ranks(1);
  run_ranks(ranks, [&](Rank& rank) {
    ReferenceAdamW optimizer(rank.host.host());
    StepDriver d(context, rank, small_model(), &optimizer, false);
    const ciuic_use u = make_use(0, CIUIC_PASS_BACKWARD);
    require_refused(d, d.try_begin({u}), "begin_step before setup");
    require_refused(d, try_bind(d, u), "bind before setup");
    require_refused(d, d.vt().drop(d.self(), &u, nullptr), "drop before setup");
    require_refused(d, d.vt().grad_ready(d.self(), &u, nullptr), "grad_ready before setup");
    require_refused(d, d.vt().end_backward(d.self(), nullptr), "end_backward before setup");
    require_refused(d, try_stats(d), "grad_stats before setup");
    require_refused(d, try_step(d), "step before setup");
    require_refused(d, d.vt().rollback(d.self(), 0), "rollback before setup");
    MemoryState state;
    put_first_values(state, small_model());
    const ciuic_descriptor& descriptor = context.plugin.descriptor();
    require_refused(d, descriptor.state_load(d.self(), state.reader(rank.host.host())),
                    "state_load before setup");
  });
}

void inside_a_step(const TestContext& context) {
  drive(context, 1, small_model(), [&](StepDriver& d) {
    require_refused(d, d.vt().setup(d.self(), d.plan().c()), "a second setup");
    const Schedule uses = plain_schedule(num_units(d.model()), {false});
    for (uint64_t update = 1; update <= 2; ++update) {
      d.begin(uses);
      require_refused(d, try_stats(d), "grad_stats before end_backward");
      require_refused(d, try_step(d), "step before end_backward");
      d.walk(uses, whole_gradient);
      const ciuic_use u = make_use(2, CIUIC_PASS_FORWARD);
      require_refused(d, d.vt().drop(d.self(), &u, nullptr), "a drop without a bind");
      require_refused(d, try_stats(d), "grad_stats after the last use but before end_backward");
      d.end_backward();
      (void)d.stats();
      d.step(rule_step(update));
      require_refused(d, try_step(d), "a second step with the same gradients");
    }
  });
}

void unknown_unit(const TestContext& context) {
  drive(context, 1, small_model(), [&](StepDriver& d) {
    const ciuic_use u = make_use(1000, CIUIC_PASS_FORWARD);
    d.begin({u}, false, CIUIC_STEP_EVALUATE);
    const int32_t code = d.code_of(try_bind(d, u));
    require(code == CIUIC_INVALID || code == CIUIC_PRECONDITION,
            std::string("bind of unit 1000 of 4: ") + code_name(code) + ", expected INVALID");
  });
}

}  // namespace

TestTable sharding_order_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_SHARDING;
  return {
      {"sharding.order.setup", 3, kKind, 30, "every call before setup is PRECONDITION",
       before_setup},
      {"sharding.order.step", 3, kKind, 30,
       "statistics and steps before end_backward, drops without binds, a second step: PRECONDITION",
       inside_a_step},
      {"sharding.order.unit", 3, kKind, 30, "a unit that is not there is INVALID", unknown_unit},
  };
}

}  // namespace ciuic::testing
