// SPDX-License-Identifier: MIT
//
// Steps that do not end well: rollback anywhere before step, transports and optimizers that fail.
// Every rank hears of it, and nobody waits for ever.
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "sharding_tables.h"
#include "steps.h"

namespace ciuic::testing {
namespace {

// ---- rollback ----

/// A step that is rolled back after `stop` calls; false: it has fewer.
bool half_step(StepDriver& d, int stop) {
  const Schedule uses = plain_schedule(num_units(d.model()), {false, false});
  int calls = 0;
  const auto is_over = [&] { return calls++ == stop; };
  d.begin(uses);
  for (const ciuic_use& u : uses) {
    if (is_over()) {
      return true;
    }
    const ArrayView<ciuic_binding> bindings = d.bind(u);
    if (is_over()) {
      return true;  // with the unit bound
    }
    if (u.pass == CIUIC_PASS_BACKWARD) {
      for (const ciuic_binding& b : bindings) {
        if (b.grad != nullptr) {
          StepDriver::add_gradient(b, [](uint64_t, int64_t) { return 55.0; });
        }
      }
      if (is_over()) {
        return true;
      }
      d.ready(u);
    }
    d.drop(u);
  }
  if (is_over()) {
    return true;
  }
  d.end_backward();
  if (is_over()) {
    return true;
  }
  (void)d.stats();
  return is_over();
}

void rolls_back(const TestContext& context) {
  const Training training(context.seed);
  UnshardedNet<float> net(training);
  net.train(1, 3);
  bool is_inside = true;
  for (int stop = 0; is_inside; ++stop) {
    std::atomic<bool> was_inside{true};
    MemoryState end;
    drive(
        context, 2, training.model,
        [&](StepDriver& d) {
          for (uint64_t update = 1; update <= 3; ++update) {
            if (update == 2) {
              was_inside = half_step(d, stop);
              d.rollback();
            }
            run_passes(d, training, update);
            (void)d.stats();
            d.step(rule_step(update));
          }
        },
        &end);
    is_inside = was_inside;
    require_equal(
        end, net, training.model,
        "a step that was rolled back after call " + std::to_string(stop) + " and then done again");
  }
}

// ---- transports ----

/// Whole steps until one fails; what it failed with. The instance is then rolled back.
std::optional<Error> first_error(StepDriver& d, uint64_t updates) {
  try {
    for (uint64_t update = 1; update <= updates; ++update) {
      d.run_backward(whole_gradient);
      (void)d.stats();
      d.step(rule_step(update));
    }
    // A strategy may gather what a step changed under the next forward: each unit tells of its own.
    Schedule uses;
    for (uint32_t unit = 0; unit < num_units(d.model()); ++unit) {
      uses.push_back(make_use(unit, CIUIC_PASS_FORWARD));
      uses.back().index = unit;
    }
    d.begin(uses, true, CIUIC_STEP_EVALUATE);
    for (const ciuic_use& u : uses) {
      d.touch(u);
    }
  } catch (const Error& e) {
    return e;
  }
  return std::nullopt;
}

void transport_fails(const TestContext& context) {
  bool was_reached = true;
  for (int nth = 0; was_reached && nth < 40; ++nth) {
    RankGroup ranks(3);
    std::atomic<int> count{0};
    for (const char* name : {"world", "data", "control"}) {
      ranks.meeting(name).before_execute([&count, nth](const Operation&) {
        if (count++ == nth) {
          throw Error(CIUIC_UNAVAILABLE, "connection closed by the test", 1);
        }
      });
    }
    std::atomic<bool> has_started{false};
    drive(context, ranks, small_model(), [&](StepDriver& d) {
      const std::optional<Error> e = first_error(d, 2);
      has_started = has_started || e.has_value();
      if (e) {
        require(e->code() == CIUIC_UNAVAILABLE,
                "collective " + std::to_string(nth) + " failed with UNAVAILABLE; the step says \"" +
                    e->what() + "\", " + code_name(e->code()) + ": keep the cause's code");
        (void)d.code_of(d.vt().rollback(d.self(), 1'000'000'000));
      } else {
        require(count <= nth, "collective " + std::to_string(nth) +
                                  " failed on all ranks, and rank " +
                                  std::to_string(d.rank().rank()) + " heard of no error");
      }
    });
    was_reached = has_started;
  }
}

/// As when a machine dies: the others' collectives end with UNAVAILABLE.
void peer_leaves(const TestContext& context) {
  for (int after = 0; after < 4; ++after) {
    RankGroup ranks(3);
    drive(context, ranks, small_model(), [&](StepDriver& d) {
      if (d.rank().rank() == 1) {
        if (after > 0) {
          const Schedule uses = plain_schedule(num_units(d.model()), {false});
          d.begin(uses);
          (void)d.code_of([&] {  // the first uses; what fails here fails because others left
            try {
              for (int i = 0; i < after; ++i) {
                d.touch(uses[static_cast<size_t>(i)]);
              }
            } catch (const Error&) {  // it is this rank that is leaving
            }
            return static_cast<ciuic_status*>(nullptr);
          }());
        }
        ranks.leave(1);
        return;
      }
      const std::optional<Error> e = first_error(d, 1);
      require(e.has_value(), "rank 1 left in the middle of a step, and rank " +
                                 std::to_string(d.rank().rank()) + " heard of no error");
      require(e->code() == CIUIC_UNAVAILABLE, std::string("rank 1 left; the step says \"") +
                                                  e->what() + "\", " + code_name(e->code()) +
                                                  ": keep the cause's code");
    });
  }
}

// ---- optimizers ----

void optimizer_fails(const TestContext& context) {
  for (const bool on_all : {true, false}) {
    const Model model = small_model();
    MemoryState start;
    put_first_values(start, model);
    RankGroup ranks(2);
    run_ranks(ranks, [&](Rank& rank) {
      ReferenceAdamW optimizer(rank.host.host());
      StepDriver d(context, rank, model, &optimizer);
      d.load(start);
      const bool is_faulty = on_all || rank.rank() == 1;
      if (is_faulty) {
        optimizer.fail_with(Error(CIUIC_DATA_LOSS, "the optimizer fails by order of the test"));
      }
      const std::optional<Error> e = first_error(d, 1);
      if (is_faulty) {
        ranks.leave(rank.rank());  // as the host does with a rank that cannot go on
        require(e.has_value(), "the optimizer failed, and step said nothing");
        const bool is_cause =
            e->code() == CIUIC_DATA_LOSS || (on_all && e->code() == CIUIC_UNAVAILABLE);
        require(is_cause, std::string("the optimizer failed with DATA_LOSS; step says \"") +
                              e->what() + "\", " + code_name(e->code()));
      }
    });
  }
}

}  // namespace

TestTable sharding_failure_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_SHARDING;
  return {
      {"sharding.rollback.anywhere", 3, kKind, 120,
       "a step rolled back after any call and done again gives the same bits", rolls_back},
      {"sharding.fail.transport", 3, kKind, 120,
       "a collective that fails surfaces as its status on all ranks", transport_fails},
      {"sharding.fail.peer", 3, kKind, 60, "a rank that leaves ends the others' waits",
       peer_leaves},
      {"sharding.fail.optimizer", 3, kKind, 60,
       "an optimizer's error comes out of step, on all ranks or on one", optimizer_fails},
  };
}

}  // namespace ciuic::testing
