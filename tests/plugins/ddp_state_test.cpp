// SPDX-License-Identifier: MIT
//
// ddp's values, masters and moments: who holds them, how they are saved, loaded and freed.
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sharding_driver.h"

namespace ciuic::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// bf16 matrices with fp32 masters, an fp32 norm, one frozen and one tied parameter.
std::vector<ParamSpec> mixed_model() {
  std::vector<ParamSpec> model{{"embed.weight", {5, 3}, 0},
                               {"norm.weight", {7}, 1},
                               {"layer.weight", {3, 5}, 1},
                               {"frozen.weight", {4}, 1, CIUIC_PARAM_FROZEN},
                               {"head.weight", {5, 3}, 2, CIUIC_PARAM_IN_NORM, 0}};
  for (const size_t matrix : {0U, 2U, 3U, 4U}) {
    model[matrix].value = kBF16;
  }
  return model;
}

class DdpState : public ::testing::Test {
 protected:
  LoadedPlugin ddp = load_plugin("ddp");
  LoadedPlugin adamw = load_plugin("adamw");

  /// Loads `from`, trains some steps (the same at every world size), saves.
  MemoryState& train(MemoryState& from, MemoryState& to, int world, int steps) const {
    RankGroup ranks(world);
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, ddp, adamw, mixed_model());
      d.instance().load(from);
      for (int step = 0; step < steps; ++step) {
        // Powers of two: any split over ranks sums to the same bits.
        (void)d.train(
            [&](uint64_t param, int64_t i) {
              return rank.rank() == 0
                         ? std::ldexp(
                               1.0, static_cast<int>((static_cast<int64_t>(param) + i + step) % 5))
                         : 0.0;
            },
            1e-2);
      }
      d.instance().save(to);
    });
    return to;
  }
};

TEST_F(DdpState, SavesEachElementOnce) {
  for (const int world : {1, 2, 3, 4, 7}) {
    MemoryState start;
    initialise(start, mixed_model());
    MemoryState end;
    train(start, end, world, 1);
    EXPECT_THAT(end.uneven(), IsEmpty()) << world;
    std::vector<std::string> keys;
    for (const auto& [key, entry] : end.entries()) {
      keys.push_back(key);
    }
    EXPECT_THAT(keys,
                ::testing::ElementsAre(
                    "master/embed.weight", "master/layer.weight", "moment/exp_avg/embed.weight",
                    "moment/exp_avg/layer.weight", "moment/exp_avg/norm.weight",
                    "moment/exp_avg_sq/embed.weight", "moment/exp_avg_sq/layer.weight",
                    "moment/exp_avg_sq/norm.weight", "value/frozen.weight", "value/norm.weight"));
    EXPECT_EQ(dtype_name(end.entry("master/embed.weight").dtype), "f32");
    EXPECT_EQ(dtype_name(end.entry("value/frozen.weight").dtype), "bf16");
  }
}

TEST_F(DdpState, LoadsAtAnyWorldWithTheSameBits) {
  MemoryState start;
  initialise(start, mixed_model());
  MemoryState saved;
  train(start, saved, 3, 4);
  for (const int world : {1, 2, 4, 5}) {
    MemoryState again;
    train(saved, again, world, 0);
    EXPECT_TRUE(again == saved) << "world " << world;
  }
  // The same as without a stop. (Updates count from 1 again in both, so compare two stops.)
  MemoryState one;
  MemoryState other;
  train(saved, one, 1, 3);
  train(saved, other, 4, 3);
  EXPECT_TRUE(one == other);
}

TEST_F(DdpState, FieldBug_B022_FrozenValuesAreSavedToo) {
  MemoryState start;
  initialise(start, mixed_model());
  MemoryState end;
  train(start, end, 2, 3);
  for (int64_t i = 0; i < 4; ++i) {
    const float first = static_cast<float>(start.entry("value/frozen.weight").at(i));
    EXPECT_EQ(end.entry("value/frozen.weight").at(i), bf16_to_float(float_to_bf16(first)));
  }
}

TEST_F(DdpState, MissingMasterComesFromTheValueAndBack) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    MemoryState values;
    initialise(values, mixed_model());  // value/ only, as first values are
    MemoryState mixed;
    {
      ShardingDriver d(rank, ddp, adamw, mixed_model());
      d.instance().load(values);
      const auto u = ShardingDriver::use(0, CIUIC_PASS_FORWARD);
      const ciuic_tensor& value = *d.bind(u)[0].value;
      for (int64_t i = 0; i < 15; ++i) {
        const auto master = static_cast<float>(values.entry("value/embed.weight").at(i));
        EXPECT_EQ(read_as<uint16_t>(element_at(value, i)), float_to_bf16(master))
            << "the value is the master, rounded";
      }
      d.drop(u);
      d.instance().save(mixed);
      EXPECT_EQ(mixed.entry("master/embed.weight").at(3),
                static_cast<float>(values.entry("value/embed.weight").at(3)));
      EXPECT_EQ(mixed.entry("moment/exp_avg/embed.weight").at(0), 0.0);
    }
    std::vector<ParamSpec> wide = mixed_model();
    for (ParamSpec& p : wide) {
      p.value = kF32;
    }
    ShardingDriver d(rank, ddp, adamw, wide);  // an fp32 run from a bf16 run's state: master/ only
    d.instance().load(mixed);
    MemoryState back;
    d.instance().save(back);
    EXPECT_EQ(back.entry("value/embed.weight").data, mixed.entry("master/embed.weight").data);
  });
}

TEST_F(DdpState, LoadReplacesMomentsAlsoWhereTheStateHasNone) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    MemoryState start;
    initialise(start, mixed_model());
    ShardingDriver d(rank, ddp, adamw, mixed_model());
    d.instance().load(start);
    (void)d.train([](uint64_t, int64_t) { return 1.0; }, 0.1);
    d.instance().load(start);
    MemoryState end;
    d.instance().save(end);
    for (int64_t i = 0; i < 7; ++i) {
      EXPECT_EQ(end.entry("moment/exp_avg_sq/norm.weight").at(i), 0.0);
    }
  });
}

TEST_F(DdpState, MissingValuesAreNamed) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    MemoryState start;
    initialise(start, mixed_model());
    start.erase("value/layer.weight");
    ShardingDriver d(rank, ddp, adamw, mixed_model());
    const Error e = error_of([&] { d.instance().load(start); });
    EXPECT_EQ(e.code(), CIUIC_NOT_FOUND);
    EXPECT_THAT(e.what(), HasSubstr("layer.weight"));
  });
}

TEST_F(DdpState, PiecesOfAModelParallelTensorMakeTheWhole) {
  RankGroup ranks(2);
  ranks.add_group("piece", {{0}, {1}});
  MemoryState start;
  std::vector<double> values;
  for (int i = 0; i < 24; ++i) {
    values.push_back(i);
  }
  start.put("value/w", {4, 6}, values);
  MemoryState end;
  ranks.run([&](Rank& rank) {
    ParamSpec columns{"w", {4, 3}, 0, CIUIC_PARAM_IN_NORM, -1, "piece"};
    columns.global_shape = {4, 6};
    columns.offset = {0, 3 * rank.rank()};
    ShardingDriver d(rank, ddp, adamw, {columns});
    d.instance().load(start);
    const auto u = ShardingDriver::use(0, CIUIC_PASS_FORWARD);
    const ciuic_tensor& value = *d.bind(u)[0].value;
    EXPECT_EQ(load_element(kF32, element_at(value, 4)), 6 + 1 + 3 * rank.rank());
    d.drop(u);
    d.instance().save(end);
  });
  EXPECT_THAT(end.uneven(), IsEmpty());
  EXPECT_EQ(end.entry("value/w").data, start.entry("value/w").data);
}

TEST_F(DdpState, ReplicasAreWrittenByOneCopy) {
  RankGroup ranks(2);
  ranks.add_group("piece", {{0}, {1}});
  MemoryState start;
  start.put("value/norm", {3}, {1, 2, 3});
  MemoryState end;
  ranks.run([&](Rank& rank) {
    const uint32_t flags =
        CIUIC_PARAM_REPLICATED | (rank.rank() == 0 ? uint32_t{CIUIC_PARAM_IN_NORM} : 0U);
    ShardingDriver d(rank, ddp, adamw, {{"norm", {3}, 0, flags, -1, "piece"}});
    d.instance().load(start);
    d.instance().save(end);
  });
  EXPECT_THAT(end.uneven(), IsEmpty());
}

TEST_F(DdpState, FieldBug_B015_NormWeightsMoveUnderBf16) {
  RankGroup ranks(2);
  MemoryState start;
  start.put("value/norm.weight", {3}, {1, 1, 1});
  MemoryState end;
  MemoryState exported;
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw,
                     {{"norm.weight", {3}, 0, CIUIC_PARAM_IN_NORM, -1, "data", kBF16}}, {},
                     {{"weight_decay", 0.0}});
    d.instance().load(start);
    for (int step = 0; step < 100; ++step) {
      (void)d.train([](uint64_t, int64_t) { return 0.5; }, 6e-4);
    }
    d.instance().save(end);
    d.export_roles(1U << CIUIC_ROLE_VALUE, exported);
  });
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(end.entry("master/norm.weight").at(i), 0.94, 1e-4);
    EXPECT_EQ(exported.entry("value/norm.weight").at(i), 0.94140625);
  }
}

TEST_F(DdpState, FactorsOfAParameterAreRespected) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    MemoryState start;
    start.put("value/a", {1}, {1});
    start.put("value/b", {1}, {1});
    ShardingDriver d(rank, ddp, adamw, {{"a", {1}, 0}, {"b", {1}, 0}});
    d.plan().params()[1].weight_decay = 0;
    d.plan().params()[1].lr_scale = 0.5;
    d.instance().load(start);
    (void)d.train([](uint64_t, int64_t) { return 1.0; }, 0.1);
    MemoryState end;
    d.instance().save(end);
    EXPECT_NEAR(end.entry("value/a").at(0), 1 - 0.1 * 0.1 - 0.1, 1e-6);
    EXPECT_NEAR(end.entry("value/b").at(0), 1 - 0.05, 1e-6);
  });
}

// ---- who holds what ----

TEST_F(DdpState, PlanShowsAReplicaPerRank) {
  RankGroup ranks(3);
  Rank& rank = ranks.rank(1);
  const PluginInstance optimizer = adamw.create(rank.host);
  const ciuic_kind_service service = optimizer.service();
  rank.host.offer("ciuic.optimizer", &service);
  const PluginInstance instance = ddp.create(rank.host, {}, rank.seat());
  ShardPlan plan(rank, mixed_model());
  for (ciuic_param& p : plan.params()) {
    p.reduce = kBF16;
  }
  std::vector<ciuic_group> silent = rank.groups();
  for (ciuic_group& g : silent) {
    g.vt = nullptr;  // an estimate
  }
  plan.edit().groups = to_array(silent);
  ciuic_array shown{};
  const auto count = [&](uint64_t param) {
    int64_t roles = 0;
    for (const ciuic_extent& e : ArrayView<ciuic_extent>(shown)) {
      EXPECT_EQ(e.begin, 0);
      EXPECT_EQ(e.end, plan.params()[e.param].num_elements);
      EXPECT_LT(e.owner, 3);
      roles += e.param == param ? 1 : 0;
    }
    return roles;
  };
  const auto& vt = instance.table<ciuic_sharding_vt>();
  instance.check(vt.plan(instance.self(), plan.c(), &shown));
  EXPECT_EQ(count(0), 3 * 6) << "value, gradient, reduce, master, two moments";
  EXPECT_EQ(count(1), 3 * 5) << "no separate master";
  EXPECT_EQ(count(3), 3 * 1) << "frozen";
  EXPECT_EQ(count(4), 0) << "tied";
  plan.edit().flags = CIUIC_PLAN_OWN;
  instance.check(vt.plan(instance.self(), plan.c(), &shown));
  EXPECT_EQ(count(0), 6);
  for (const ciuic_extent& e : ArrayView<ciuic_extent>(shown)) {
    EXPECT_EQ(e.owner, 1);
  }
  rank.host.offer("ciuic.optimizer", nullptr);
}

TEST_F(DdpState, MemoryIsTakenAtSetupAndGivenBack) {
  for (const int world : {1, 2}) {
    RankGroup ranks(world);
    MemoryState start;
    initialise(start, mixed_model());
    ranks.run([&](Rank& rank) {
      {
        ShardingDriver d(rank, ddp, adamw, mixed_model());
        d.instance().load(start);
        const int64_t taken = rank.host.allocations();
        EXPECT_GT(rank.host.live_bytes(), 0);
        for (int step = 0; step < 3; ++step) {
          (void)d.train([](uint64_t, int64_t) { return 1.0; }, 0.1);
        }
        EXPECT_EQ(rank.host.allocations(), taken) << "no memory is taken in a step";
      }
      EXPECT_TRUE(rank.host.balanced());
    });
  }
}

TEST_F(DdpState, SetupWithoutMemoryLeavesNothingBehind) {
  for (int64_t count = 0; count < 12; ++count) {
    RankGroup ranks(1);
    ranks.run([&](Rank& rank) {
      rank.host.fail_allocations_after(count);
      const Error e = error_of([&] { const ShardingDriver d(rank, ddp, adamw, mixed_model()); });
      EXPECT_TRUE(e.code() == CIUIC_EXHAUSTED || e.code() == CIUIC_OK);
      EXPECT_TRUE(rank.host.balanced());
    });
  }
}

TEST_F(DdpState, EvaluatesWithoutAnOptimizer) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    MemoryState start;
    initialise(start, mixed_model());
    ShardPlan plan(rank, mixed_model());
    const PluginInstance d = ddp.create(rank.host, {}, rank.seat());
    const auto& vt = d.table<ciuic_sharding_vt>();
    const Error early = error_of([&] { d.load(start); });
    EXPECT_EQ(early.code(), CIUIC_PRECONDITION) << early.what();
    d.check(vt.setup(d.self(), plan.c()));
    d.load(start);
    ciuic_step step{};
    step.struct_size = sizeof(step);
    step.flags = CIUIC_STEP_EVALUATE;
    step.step = 1;
    d.check(vt.begin_step(d.self(), &step));
    d.check(vt.end_backward(d.self(), nullptr));
    ciuic_step_update update{};
    update.struct_size = sizeof(update);
    update.update = 1;
    ciuic_work* work = nullptr;
    const Error e = error_of([&] { d.check(vt.step(d.self(), &update, nullptr, &work)); });
    EXPECT_THAT(e.what(), HasSubstr("needs an optimizer"));
  });
}

}  // namespace
}  // namespace ciuic::testing
