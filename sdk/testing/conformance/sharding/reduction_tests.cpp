// SPDX-License-Identifier: MIT
//
// How gradients are summed: over micro-batches and ranks, in the reduce type, over a second group,
// and in an order that no world size changes.
#include <chrono>
#include <string>

#include <ciuic/testing/features.hpp>

#include "sharding_tables.h"
#include "steps.h"

namespace ciuic::testing {
namespace {

void require_exact(const TestContext& context) {
  if (has_feature(context.plugin.descriptor(), "gradients:lossy")) {
    throw NotOffered("the plugin compresses gradients (gradients:lossy)");
  }
}

/// `steps` updates; in each, every rank adds rank + 1 times the whole gradient in each of
/// `micro_batches`, in which `is_idle(rank, m)` ranks have no data.
void train_whole(const TestContext& context, int world, uint32_t micro_batches, uint64_t steps,
                 const Model& model, const std::function<bool(int, uint32_t)>& is_idle,
                 const std::string& when) {
  require_exact(context);
  MemoryState end;
  drive(
      context, world, model,
      [&](StepDriver& d) {
        const int rank = d.rank().rank();
        for (uint64_t update = 1; update <= steps; ++update) {
          std::vector<bool> idle;
          for (uint32_t m = 0; m < micro_batches; ++m) {
            idle.push_back(is_idle(rank, m));
          }
          const Schedule uses = plain_schedule(num_units(model), idle);
          d.begin(uses);
          d.walk(uses,
                 [&](uint64_t param, int64_t i) { return (rank + 1) * whole_gradient(param, i); });
          d.end_backward();
          (void)d.stats();
          d.step(rule_step(update));
        }
      },
      &end);
  double weight = 0;
  for (int r = 0; r < world; ++r) {
    for (uint32_t m = 0; m < micro_batches; ++m) {
      weight += is_idle(r, m) ? 0 : r + 1;
    }
  }
  const GradientOf sum = [weight](uint64_t param, int64_t i) {
    return weight * whole_gradient(param, i);
  };
  require_updated(end, model, std::vector<GradientOf>(steps, sum), when);
}

void sums_micro_batches(const TestContext& context) {
  for (const int world : {1, 2, 3}) {
    train_whole(
        context, world, 3, 3, small_model(), [](int, uint32_t) { return false; },
        "3 micro-batches on " + std::to_string(world) + " ranks");
  }
}

void idle_adds_zero(const TestContext& context) {
  train_whole(
      context, 2, 2, 3, small_model(), [](int rank, uint32_t) { return rank == 1; },
      "rank 1 of 2 always idle");
  train_whole(
      context, 3, 2, 3, small_model(),
      [](int rank, uint32_t m) { return static_cast<int>(m) == rank; },
      "each of 3 ranks idle in another micro-batch");
  train_whole(
      context, 2, 1, 2, small_model(), [](int, uint32_t) { return true; }, "all ranks idle");
}

/// A rank that runs out of memory turns idle after it announced work.
void turns_idle(const TestContext& context) {
  require_exact(context);
  const Model model = small_model();
  MemoryState end;
  drive(
      context, 2, model,
      [&](StepDriver& d) {
        for (uint64_t update = 1; update <= 2; ++update) {
          Schedule uses = plain_schedule(num_units(model), {false});
          d.begin(uses);
          for (ciuic_use& u : uses) {
            u.flags |= d.rank().rank() == 0 ? uint32_t{CIUIC_USE_IDLE} : 0U;
          }
          d.walk(uses, whole_gradient);
          d.end_backward();
          (void)d.stats();
          d.step(rule_step(update));
        }
      },
      &end);
  require_updated(end, model, {whole_gradient, whole_gradient},
                  "rank 0 turned idle after begin_step");
}

/// Whole numbers below 256 are exact in bf16.
void narrow_reduce(const TestContext& context) {
  Model model = small_model();
  for (ModelParam& p : model) {
    p.reduce = kBF16;
  }
  for (const int world : {1, 2, 4}) {
    train_whole(
        context, world, 2, 2, model, [](int, uint32_t) { return false; },
        "gradients that travel in bf16 on " + std::to_string(world) + " ranks");
  }
}

/// bf16 would lose the small ones: 256 + 1 = 256.
void accumulates_in_grad_type(const TestContext& context) {
  require_exact(context);
  Model model{{"w", {9}, 0}};
  model[0].value = kBF16;
  drive(context, 2, model, [&](StepDriver& d) {
    const std::vector<bool> idle(300, false);
    const Schedule uses = plain_schedule(1, idle);
    d.begin(uses);
    d.walk(uses, [](uint64_t, int64_t) { return 1.0; });
    d.end_backward();
    require_norm(d, 600 * 3.0, "300 micro-batches of ones on 2 ranks, added in fp32");
  });
}

void second_sum(const TestContext& context) {
  RankGroup ranks(2);
  ranks.add_group("alone", {{0}, {1}});
  Model model{{"tied_over_stages", {5}, 0}, {"own", {3}, 0}};
  model[0].group = model[1].group = "alone";
  model[0].sum_group = "world";
  MemoryState start;
  put_first_values(start, model);
  std::vector<std::vector<double>> values(2);
  run_ranks(ranks, [&](Rank& rank) {
    ReferenceAdamW optimizer(rank.host.host());
    StepDriver d(context, rank, model, &optimizer, false);
    const int32_t code = d.code_of(d.vt().setup(d.self(), d.plan().c()));
    if (code == CIUIC_UNIMPLEMENTED) {
      throw NotOffered("setup refuses a second sum (ciuic_param.sum_group)");
    }
    require(code == CIUIC_OK, "setup of a model with sum_group: " + std::string(code_name(code)));
    d.load(start);
    d.run_backward([&](uint64_t, int64_t) { return 1.0 + rank.rank(); });
    (void)d.stats();
    d.step(rule_step(1));
    const ciuic_use u = make_use(0, CIUIC_PASS_FORWARD);
    d.begin({u}, true, CIUIC_STEP_EVALUATE);
    for (const ciuic_binding& b : d.bind(u)) {
      for (int64_t i = 0; i < num_elements(*b.value); ++i) {
        values[static_cast<size_t>(rank.rank())].push_back(StepDriver::value_at(b, i));
      }
    }
    d.drop(u);
  });
  const auto expected = [&](uint64_t param, int64_t i, double g) {
    auto value = static_cast<float>(first_value(param, i));
    float mean = 0;
    float square = 0;
    adamw_element(AdamWScalars<float>(AdamWRule{}, rule_step(1)),
                  static_cast<float>(g * rule_step(1).grad_scale), value, mean, square);
    return static_cast<double>(value);
  };
  for (size_t r = 0; r < 2; ++r) {
    for (int64_t i = 0; i < 8; ++i) {
      const double want =
          i < 5 ? expected(0, i, 3) : expected(1, i - 5, 1.0 + static_cast<double>(r));
      require_near(values[r][static_cast<size_t>(i)], want, 1e-6,
                   "rank " + std::to_string(r) + " after a second sum over the world");
    }
  }
}

/// Gradients that do not add up exactly, over 4 slots: the tree over slots is the same at any world.
void any_world(const TestContext& context) {
  const Model model = small_model();
  const auto run = [&](int world, const std::vector<uint32_t>& positions) {
    auto end = std::make_unique<MemoryState>();
    drive(
        context, world, model,
        [&](StepDriver& d) {
          const auto slots = static_cast<uint32_t>(4 / world);
          const uint32_t position = positions[static_cast<size_t>(d.rank().rank())];
          d.set_position(position);
          const Schedule uses = plain_schedule(num_units(model), std::vector<bool>(slots, false));
          const int32_t code = d.code_of(d.try_begin(uses, true, CIUIC_STEP_ANY_WORLD));
          if (code == CIUIC_UNIMPLEMENTED) {
            throw NotOffered("begin_step refuses CIUIC_STEP_ANY_WORLD");
          }
          require(code == CIUIC_OK, "begin_step with ANY_WORLD: " + std::string(code_name(code)));
          for (const ciuic_use& u : uses) {
            const uint32_t slot = position * slots + u.micro_batch;
            const auto gradient = [&](uint64_t param, int64_t i) {
              return std::sin(static_cast<double>(param * 100 + slot * 37) +
                              static_cast<double>(i)) *
                     std::pow(10.0, static_cast<double>(slot));
            };
            u.pass == CIUIC_PASS_FORWARD ? d.touch(u) : d.backward(u, gradient);
          }
          d.end_backward();
          (void)d.stats();
          d.step(rule_step(1));
        },
        end.get());
    return end;
  };
  const auto alone = run(1, {0});
  // Which rank holds which slots is first_slot's to say: with reversed bits, a rank keeps its samples
  // when the world grows.
  for (const std::vector<uint32_t>& positions :
       {std::vector<uint32_t>{0, 1}, {0, 1, 2, 3}, {0, 2, 1, 3}}) {
    const auto end = run(static_cast<int>(positions.size()), positions);
    for (const ModelParam& p : model) {
      require(stored(*end, p).data == stored(*alone, p).data,
              "ANY_WORLD: " + p.name + " differs between " + std::to_string(positions.size()) +
                  " ranks and 1; sum as a balanced binary tree over global slots");
    }
  }
}

/// A transport that reads a bucket long after submit returned: nobody may write to it before.
void late_transports(const TestContext& context) {
  require_exact(context);
  const Model model = small_model();
  for (const int world : {2, 3}) {
    RankGroup ranks(world);
    for (const char* name : {"world", "data", "control"}) {
      ranks.meeting(name).execute_late(std::chrono::milliseconds(1));
    }
    MemoryState end;
    drive(
        context, ranks, model,
        [&](StepDriver& d) {
          for (uint64_t update = 1; update <= 3; ++update) {
            const Schedule uses = plain_schedule(num_units(model), {false, false});
            d.begin(uses);
            d.walk(uses, whole_gradient);
            d.end_backward();
            (void)d.stats();
            d.step(rule_step(update));
          }
        },
        &end);
    const GradientOf sum = [world](uint64_t param, int64_t i) {
      return 2 * world * whole_gradient(param, i);
    };
    require_updated(
        end, model, std::vector<GradientOf>(3, sum),
        "collectives that run 1 ms after their submit, on " + std::to_string(world) + " ranks");
  }
}

}  // namespace

TestTable sharding_reduction_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_SHARDING;
  return {
      {"sharding.grad.micro_batches", 3, kKind, 60,
       "gradients of all micro-batches and ranks are summed, step after step", sums_micro_batches},
      {"sharding.grad.idle", 3, kKind, 60, "idle uses contribute zeros", idle_adds_zero},
      {"sharding.grad.turns_idle", 3, kKind, 60,
       "a use may be idle although begin_step announced it with data", turns_idle},
      {"sharding.grad.reduce_type", 3, kKind, 60,
       "gradients travel in the reduce type and come back whole", narrow_reduce},
      {"sharding.grad.accumulates", 3, kKind, 60,
       "micro-batches are added in the gradient's type, not the value's", accumulates_in_grad_type},
      {"sharding.grad.sum_group", 3, kKind, 60, "sum_group: the gradient is also summed there",
       second_sum},
      {"sharding.grad.late", 3, kKind, 60,
       "a transport that works late, beside the ranks, changes no bit", late_transports},
      {"sharding.grad.any_world", 3, kKind, 60,
       "ANY_WORLD: the same bits on 1, 2 and 4 ranks for arbitrary gradients", any_world},
  };
}

}  // namespace ciuic::testing
