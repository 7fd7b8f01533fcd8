// SPDX-License-Identifier: MIT
//
// ddp's gradients: buckets, sums, order, norm, faults.
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sharding_driver.h"

namespace ciuic::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kGradBit = 1U << CIUIC_ROLE_GRAD;
constexpr uint32_t kValueBit = 1U << CIUIC_ROLE_VALUE;

/// Embedding, two layers, head; sizes that fit no alignment.
std::vector<ParamSpec> small_model() {
  return {{"embed.weight", {5, 3}, 0},    {"layers.0.norm.weight", {7}, 1},
          {"layers.0.weight", {3, 5}, 1}, {"layers.1.norm.weight", {7}, 2},
          {"layers.1.weight", {3, 5}, 2}, {"head.weight", {5, 3}, 3}};
}

class Ddp : public ::testing::Test {
 protected:
  LoadedPlugin ddp = load_plugin("ddp");
  LoadedPlugin adamw = load_plugin("adamw");
};

TEST_F(Ddp, SumsGradientsOverRanksAndMicroBatches) {
  for (const int world : {1, 2, 3, 4}) {
    for (const int64_t bucket_size : {int64_t{1}, int64_t{100}, int64_t{1} << 20}) {
      RankGroup ranks(world);
      MemoryState state;
      ranks.run([&](Rank& rank) {
        ShardingDriver d(rank, ddp, adamw, small_model(), {{"bucket_size", bucket_size}});
        for (int step = 0; step < 2;
             ++step) {  // the second finds old sums where it is to overwrite
          d.begin();
          const auto gradient = [&](uint64_t param, int64_t i) {
            return static_cast<double>((rank.rank() + 1) * (static_cast<int64_t>(param) * 10 + i));
          };
          d.backward_all(gradient, 0);
          d.backward_all(gradient, CIUIC_USE_LAST_GRAD);
          d.end_backward();
          (void)d.stats();
        }
        d.export_roles(kGradBit, state);
      });
      const int total = 2 * world * (world + 1) / 2;
      EXPECT_THAT(state.uneven(), IsEmpty());
      ASSERT_EQ(state.entries().size(), 6U);
      for (size_t param = 0; param < 6; ++param) {
        const std::vector<double> sums = elements_of(state, "grad/" + small_model()[param].name);
        for (size_t i = 0; i < sums.size(); ++i) {
          EXPECT_EQ(sums[i], total * (static_cast<double>(param) * 10 + static_cast<double>(i)));
        }
      }
    }
  }
}

TEST_F(Ddp, FieldBug_B016_AccumulatesInFp32) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, {{"w", {3}, 0, CIUIC_PARAM_IN_NORM, -1, "data", kBF16}});
    d.begin();
    for (int m = 0; m < 512; ++m) {
      d.backward(
          0, [](uint64_t, int64_t) { return 1.0; }, m == 511 ? CIUIC_USE_LAST_GRAD : 0);
    }
    d.end_backward();
    EXPECT_DOUBLE_EQ(d.stats().norm, 512 * std::sqrt(3));
  });
}

TEST_F(Ddp, FirstUseOverwritesLaterOnesAdd) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, small_model());
    for (int step = 0; step < 2; ++step) {
      d.begin();
      const auto forward = ShardingDriver::use(1, CIUIC_PASS_FORWARD);
      for (const ciuic_binding& b : d.bind(forward)) {
        EXPECT_EQ(b.grad, nullptr) << "no gradient in a forward pass";
        EXPECT_EQ(b.flags, 0U);
      }
      d.drop(forward);
      for (int m = 0; m < 3; ++m) {
        const auto u = ShardingDriver::use(1, CIUIC_PASS_BACKWARD);
        const std::vector<ciuic_binding> bindings = d.bind(u);
        ASSERT_EQ(bindings.size(), 2U);
        EXPECT_EQ(bindings[0].param, 1U) << "in the order of the unit's parameters";
        EXPECT_EQ(bindings[1].param, 2U);
        for (const ciuic_binding& b : bindings) {
          EXPECT_EQ(b.flags, m == 0 ? uint32_t{CIUIC_BINDING_OVERWRITE} : 0U);
          EXPECT_EQ(b.grad->t.ndim, b.value->t.ndim);
          EXPECT_EQ(reinterpret_cast<uintptr_t>(b.grad->t.data) % 64, 0U);
          EXPECT_EQ(reinterpret_cast<uintptr_t>(b.value->t.data) % 64, 0U);
        }
        d.ready(u);
        d.drop(u);
      }
    }
  });
}

TEST_F(Ddp, WeightGradientsComeInTheWeightPass) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, {{"w", {2}, 0}});
    d.begin();
    const auto input = ShardingDriver::use(0, CIUIC_PASS_BACKWARD_INPUT);
    EXPECT_EQ(d.bind(input)[0].grad, nullptr);
    d.ready(input);
    d.drop(input);
    const auto weight = ShardingDriver::use(0, CIUIC_PASS_BACKWARD_WEIGHT, CIUIC_USE_LAST_GRAD);
    const ciuic_binding b = d.bind(weight)[0];
    EXPECT_EQ(b.flags, uint32_t{CIUIC_BINDING_OVERWRITE});
    ShardingDriver::write(b, [](uint64_t, int64_t) { return 3.0; });
    d.ready(weight);
    d.drop(weight);
    d.end_backward();
    EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(18));
  });
}

// ---- buckets and their order ----

TEST_F(Ddp, BucketsStartDuringBackwardLastUnitFirst) {
  RankGroup ranks(2);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, small_model(), {{"bucket_size", 1}});
    Meeting& data = ranks.meeting("data");
    const auto started = [&] { return data.labels(rank.rank()).size(); };
    d.begin();
    d.backward_all([](uint64_t, int64_t) { return 1.0; }, 0);
    EXPECT_EQ(started(), 0U) << "only the last micro-batch reduces";
    const std::vector<size_t> expected{1, 3, 5, 6};  // parameters of the units so far
    for (uint32_t unit = 4; unit-- > 0;) {
      d.backward(unit, [](uint64_t, int64_t) { return 1.0; });
      EXPECT_EQ(started(), expected[3 - unit]);
    }
    d.end_backward();
    EXPECT_EQ(started(), 6U);
    (void)d.stats();
  });
  EXPECT_THAT(ranks.meeting("data").labels(0),
              ElementsAre("gradients unit 3", "gradients unit 2", "gradients unit 2",
                          "gradients unit 1", "gradients unit 1", "gradients unit 0"));
  EXPECT_EQ(ranks.meeting("data").labels(0), ranks.meeting("data").labels(1));
}

TEST_F(Ddp, BucketsHoldAsMuchAsFits) {
  RankGroup ranks(2);
  ranks.run([&](Rank& rank) {
    // Each parameter takes 64 bytes with padding: two fit.
    ShardingDriver d(rank, ddp, adamw, small_model(), {{"bucket_size", 128}});
    (void)d.train([](uint64_t, int64_t) { return 1.0; }, 0.1);
  });
  EXPECT_THAT(ranks.meeting("data").labels(0),
              ElementsAre("gradients units 2-3", "gradients units 1-2", "gradients units 0-1"));
}

TEST_F(Ddp, BucketsAreFilledFromTheLastUnitOn) {
  RankGroup ranks(2);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, {{"a", {2}, 0}, {"b", {2}, 1}, {"c", {2}, 2}},
                     {{"bucket_size", 128}});
    (void)d.train([](uint64_t, int64_t) { return 1.0; }, 0.1);
  });
  EXPECT_THAT(ranks.meeting("data").labels(0),
              ElementsAre("gradients units 1-2", "gradients unit 0"));
}

TEST_F(Ddp, OrderIsTheSameWhateverTheOrderOfUnits) {
  RankGroup ranks(3);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, small_model(), {{"bucket_size", 1}});
    d.begin();
    std::vector<uint32_t> order{3, 2, 1, 0};
    std::rotate(order.begin(), order.begin() + rank.rank(), order.end());
    for (const uint32_t unit : order) {
      d.backward(unit, [](uint64_t, int64_t) { return 1.0; });
    }
    d.end_backward();
    EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(74 * 9));
  });
  EXPECT_EQ(ranks.meeting("data").labels(0), ranks.meeting("data").labels(1));
  EXPECT_EQ(ranks.meeting("data").labels(0), ranks.meeting("data").labels(2));
}

TEST_F(Ddp, FieldBug_B026_BitsDoNotDependOnBuckets) {
  const auto train = [&](int64_t bucket_size) {
    RankGroup ranks(2);
    MemoryState state;
    initialise(state, small_model());
    MemoryState end;
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, ddp, adamw, small_model(), {{"bucket_size", bucket_size}});
      d.instance().load(state);
      for (int step = 0; step < 20; ++step) {
        (void)d.train(
            [&](uint64_t param, int64_t i) {
              return std::sin(static_cast<double>(param) * 7 + static_cast<double>(i) +
                              rank.rank() + step);
            },
            1e-2);
      }
      d.instance().save(end);
    });
    return elements_of(end, "value/layers.1.weight");
  };
  const std::vector<double> whole = train(1 << 20);
  EXPECT_EQ(train(1), whole);
  EXPECT_EQ(train(130), whole);
}

TEST_F(Ddp, OneRankSendsNothing) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, small_model());
    (void)d.train([](uint64_t, int64_t) { return 1.0; }, 0.1);
  });
  EXPECT_THAT(ranks.meeting("data").labels(0), IsEmpty());
}

TEST_F(Ddp, GradientsTravelInTheReduceType) {
  RankGroup ranks(3);
  std::mutex mutex;
  std::set<std::string> types;
  ranks.meeting("data").before_execute([&](const Operation& o) {
    const std::lock_guard<std::mutex> lock(mutex);
    types.insert(dtype_name(o.dtype));
  });
  ranks.run([&](Rank& rank) {
    ParamSpec narrow{"narrow", {9}, 0};
    narrow.reduce = kBF16;
    ShardingDriver d(rank, ddp, adamw, {narrow, {"wide", {9}, 0}});
    d.begin();
    d.backward_all([&](uint64_t param, int64_t) { return param == 0 ? 1 + 1.0 / 256 : 1.0; });
    d.end_backward();
    // 1 + 2^-8 is a tie: it rounds to 1 in bf16.
    EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(2 * 9 * 9));
  });
  EXPECT_EQ(types, (std::set<std::string>{"bf16", "f32"}));
}

// ---- what gets no gradient ----

TEST_F(Ddp, IdleRanksContributeZeros) {
  RankGroup ranks(2);
  MemoryState state;
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, small_model());
    const auto ones = [](uint64_t, int64_t) { return 1.0; };
    (void)d.train([](uint64_t, int64_t) { return 100.0; }, 0);
    d.begin();
    for (uint32_t unit = 4; unit-- > 0;) {
      d.backward(unit, ones,
                 CIUIC_USE_LAST_GRAD | (rank.rank() == 1 ? uint32_t{CIUIC_USE_IDLE} : 0));
    }
    d.end_backward();
    EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(74));
    d.export_roles(kGradBit, state);
  });
  EXPECT_THAT(elements_of(state, "grad/embed.weight"), Each(1));
}

TEST_F(Ddp, AUseMayTurnIdleAfterItsBind) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, {{"w", {3}, 0}});
    d.begin();
    auto u = ShardingDriver::use(0, CIUIC_PASS_BACKWARD);
    ShardingDriver::write(d.bind(u)[0], [](uint64_t, int64_t) { return std::nan(""); });
    u.flags = CIUIC_USE_IDLE;  // as when memory ran out half-way
    d.ready(u);
    d.drop(u);
    d.backward(0, [](uint64_t, int64_t) { return 2.0; });
    d.end_backward();
    EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(12));
  });
}

TEST_F(Ddp, FieldBug_B023_UnusedUnitsHoldNobodyUp) {
  RankGroup ranks(2);
  MemoryState start;
  initialise(start, small_model());
  MemoryState end;
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, small_model(), {{"bucket_size", 1}},
                     {{"weight_decay", 0.0}});
    d.instance().load(start);
    for (uint32_t step = 0; step < 4; ++step) {
      d.begin();
      d.backward(3, [](uint64_t, int64_t) { return 1.0; });
      if (rank.rank() == 0 || step % 2 == 0) {  // in odd steps a branch of one rank alone
        d.backward(2, [](uint64_t, int64_t) { return 1.0; });
      }
      d.backward(0, [](uint64_t, int64_t) { return 1.0; });
      d.end_backward();
      const double once = 15 + 15;
      EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(4 * once + (step % 2 == 0 ? 4 : 1) * 22.0));
      d.step(0.1);
    }
    d.export_roles(kValueBit, end);
  });
  EXPECT_EQ(elements_of(end, "value/layers.0.weight"), elements_of(start, "value/layers.0.weight"));
  EXPECT_NE(elements_of(end, "value/layers.1.weight"), elements_of(start, "value/layers.1.weight"));
}

TEST_F(Ddp, FrozenParametersHaveNoGradientAndStay) {
  RankGroup ranks(2);
  std::vector<ParamSpec> model = small_model();
  model[2].flags |= CIUIC_PARAM_FROZEN;
  MemoryState start;
  initialise(start, model);
  MemoryState end;
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, model);
    d.instance().load(start);
    d.begin();
    EXPECT_EQ(d.bind(ShardingDriver::use(1, CIUIC_PASS_BACKWARD))[1].grad, nullptr);
    d.drop(ShardingDriver::use(1, CIUIC_PASS_BACKWARD));
    d.backward_all([](uint64_t, int64_t) { return 0.5; });
    d.end_backward();
    EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(74 - 15));
    d.step(0.1);
    d.instance().save(end);
  });
  EXPECT_EQ(elements_of(end, "value/layers.0.weight"), elements_of(start, "value/layers.0.weight"));
  EXPECT_NE(elements_of(end, "value/embed.weight"), elements_of(start, "value/embed.weight"));
  EXPECT_FALSE(end.has("moment/exp_avg/layers.0.weight"));
}

TEST_F(Ddp, ScalarAndEmptyParametersWork) {
  RankGroup ranks(3);
  const std::vector<ParamSpec> model{
      {"scalar", {}, 0}, {"empty", {0, 4}, 0}, {"w", {2}, 1}, {"nothing", {0}, 2}};
  MemoryState start;
  initialise(start, model);
  MemoryState end;
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, model);
    d.instance().load(start);
    EXPECT_DOUBLE_EQ(d.train([](uint64_t, int64_t) { return 1.0; }, 0.1).norm, std::sqrt(27));
    d.instance().save(end);
  });
  EXPECT_THAT(end.uneven(), IsEmpty());
  EXPECT_EQ(end.entry("value/empty").shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(end.entry("value/scalar").shape, (std::vector<int64_t>{}));
  EXPECT_NE(elements_of(end, "value/scalar"), elements_of(start, "value/scalar"));
}

// One scalar w = 1 used as w * 2 and w * 3 by two modules in two units.
TEST_F(Ddp, FieldBug_B021_TiedParametersAreOne) {
  for (const int world : {1, 2}) {
    RankGroup ranks(world);
    MemoryState start;
    start.put("value/embed", {1}, {1});
    MemoryState end;
    ranks.run([&](Rank& rank) {
      ShardingDriver d(
          rank, ddp, adamw,
          {{"embed", {1}, 0}, {"other", {4}, 1}, {"head", {1}, 2, CIUIC_PARAM_IN_NORM, 0}},
          {{"bucket_size", 1}}, {{"weight_decay", 0.0}});
      start.put("value/other", {4}, {0, 0, 0, 0});
      d.instance().load(start);
      d.begin();
      const double share = 1.0 / world;
      d.backward(2, [&](uint64_t, int64_t) { return 3 * share; });
      d.backward(1, [](uint64_t, int64_t) { return 0.0; });
      EXPECT_EQ(ranks.meeting("data").labels(rank.rank()).size(), world == 1 ? 0U : 1U)
          << "embed waits for its second use";
      d.backward(0, [&](uint64_t, int64_t) { return 2 * share; });
      d.end_backward();
      EXPECT_DOUBLE_EQ(d.stats().norm, 5);
      d.step(0.1);
      const auto embed = ShardingDriver::use(0, CIUIC_PASS_FORWARD);
      const auto head = ShardingDriver::use(2, CIUIC_PASS_FORWARD);
      EXPECT_EQ(d.bind(embed)[0].value->t.data, d.bind(head)[0].value->t.data);
      d.drop(embed);
      d.drop(head);
      d.instance().save(end);
    });
    EXPECT_NEAR(end.entry("value/embed").at(0), 0.9, 1e-6);
    EXPECT_FALSE(end.has("value/head"));
  }
}

TEST_F(Ddp, ATiedParameterWaitsForItsFirstUnit) {
  RankGroup ranks(2);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(
        rank, ddp, adamw,
        {{"embed", {1}, 0, CIUIC_PARAM_IN_NORM, 2}, {"other", {4}, 1}, {"head", {1}, 2}},
        {{"bucket_size", 1}});
    d.begin();
    d.backward_all([](uint64_t, int64_t) { return 1.0; });
    d.end_backward();
    EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(16 + 4 * 4));
  });
  EXPECT_THAT(ranks.meeting("data").labels(0),
              ElementsAre("gradients unit 1", "gradients units 0-2"));
}

// ---- non-finite values ----

TEST_F(Ddp, FieldBug_B014_EveryRankHearsOfANonFiniteValue) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (const bool name_rank : {true, false}) {
      RankGroup ranks(3);
      ranks.run([&](Rank& rank) {
        ShardingDriver d(rank, ddp, adamw, small_model(),
                         {{"bucket_size", 1}, {"name_bad_rank", name_rank}});
        d.begin();
        d.backward_all([&](uint64_t param, int64_t i) {
          const bool is_bad =
              (rank.rank() == 1 && param == 4 && i == 3) || (rank.rank() == 2 && param == 5);
          return is_bad ? bad : 1.0;
        });
        d.end_backward();
        const ciuic_grad_stats s = d.stats();
        EXPECT_EQ(s.non_finite, 1U + 15U);
        EXPECT_EQ(s.first_bad_param, 4U);
        EXPECT_EQ(s.first_bad_rank, name_rank ? 1 : -1);
        d.step(0.1, 1, CIUIC_UPDATE_SKIP);
        EXPECT_DOUBLE_EQ(d.train([](uint64_t, int64_t) { return 1.0; }, 0.1).norm,
                         std::sqrt(74 * 9))
            << "nothing of it stays";
      });
    }
  }
}

TEST_F(Ddp, NamesItselfWhenAlone) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, small_model());
    d.begin();
    d.backward_all([](uint64_t param, int64_t) { return param == 2 ? std::nan("") : 1.0; });
    d.end_backward();
    const ciuic_grad_stats s = d.stats();
    EXPECT_EQ(s.non_finite, 15U);
    EXPECT_EQ(s.first_bad_param, 2U);
    EXPECT_EQ(s.first_bad_rank, 0);
  });
}

TEST_F(Ddp, BlamesNobodyWhenOnlyTheSumOverflows) {
  RankGroup ranks(2);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, small_model());
    d.begin();
    d.backward_all([](uint64_t param, int64_t) { return param == 1 ? 3e38 : 1.0; });
    d.end_backward();
    const ciuic_grad_stats s = d.stats();
    EXPECT_EQ(s.non_finite, 7U);
    EXPECT_EQ(s.first_bad_param, 1U);
    EXPECT_EQ(s.first_bad_rank, -1);
  });
}

// ---- steps that do not end well ----

TEST_F(Ddp, SkippedStepsChangeNothing) {
  RankGroup ranks(2);
  MemoryState start;
  initialise(start, small_model());
  MemoryState end;
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, small_model());
    d.instance().load(start);
    d.begin();
    d.backward_all([](uint64_t, int64_t) { return 1e9; });
    d.end_backward();
    (void)d.stats();
    d.step(0.1, 1, CIUIC_UPDATE_SKIP);
    d.instance().save(end);
  });
  for (const ParamSpec& p : small_model()) {
    EXPECT_EQ(elements_of(end, "value/" + p.name), elements_of(start, "value/" + p.name));
    EXPECT_THAT(elements_of(end, "moment/exp_avg/" + p.name), Each(0));
  }
}

TEST_F(Ddp, RollbackForgetsHalfAStep) {
  const auto train = [&](bool with_rollback) {
    RankGroup ranks(2);
    MemoryState start;
    initialise(start, small_model());
    MemoryState end;
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, ddp, adamw, small_model(), {{"bucket_size", 1}});
      d.instance().load(start);
      const auto gradient = [&](uint64_t param, int64_t i) {
        return std::cos(static_cast<double>(param) + static_cast<double>(i) + rank.rank());
      };
      (void)d.train(gradient, 1e-2);
      if (with_rollback) {
        d.begin();
        d.backward(3, [](uint64_t, int64_t) { return 55.0; });
        (void)d.bind(ShardingDriver::use(2, CIUIC_PASS_BACKWARD));
        d.check(d.vt().rollback(d.self(), 1'000'000'000));
      }
      (void)d.train(gradient, 1e-2);
      d.instance().save(end);
    });
    return elements_of(end, "value/head.weight");
  };
  EXPECT_EQ(train(true), train(false));
}

TEST_F(Ddp, FailedSumsNameThePeer) {
  RankGroup ranks(3);
  ranks.meeting("data").before_execute([](const Operation& o) {
    if (o.label == "gradients unit 2") {
      throw Error(CIUIC_UNAVAILABLE, "connection closed", 1);
    }
  });
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, small_model(), {{"bucket_size", 1}});
    d.begin();
    d.backward_all([](uint64_t, int64_t) { return 1.0; });
    d.end_backward();
    const Error e = error_of([&] { (void)d.stats(); });
    EXPECT_EQ(e.code(), CIUIC_UNAVAILABLE);
    EXPECT_EQ(e.peer(), 1);
    EXPECT_STREQ(e.what(), "gradients unit 2: connection closed");
    d.check(d.vt().rollback(d.self(), 1'000'000'000));
  });
}

TEST_F(Ddp, APeerThatLeavesEndsTheWait) {
  RankGroup ranks(2);
  const Error left = error_of([&] {
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, ddp, adamw, small_model(), {{"bucket_size", 1}});
      d.begin();
      if (rank.rank() == 1) {
        throw Error(CIUIC_INTERNAL, "rank 1 stops");
      }
      d.backward(3, [](uint64_t, int64_t) { return 1.0; });
      const Error e = error_of([&] {
        d.end_backward();
        (void)d.stats();
      });
      EXPECT_EQ(e.code(), CIUIC_UNAVAILABLE);
      EXPECT_EQ(e.peer(), 1);
    });
  });
  EXPECT_STREQ(left.what(), "rank 1 stops");
}

TEST_F(Ddp, SaysWhenTheOrderOfCallsIsWrong) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, small_model(), {{"bucket_size", 1}});
    const auto expect_refused = [&](const char* text, const std::function<void()>& body) {
      const Error e = error_of(body);
      EXPECT_EQ(e.code(), CIUIC_PRECONDITION);
      EXPECT_THAT(e.what(), HasSubstr(text));
    };
    d.begin();
    expect_refused("before end_backward", [&] { (void)d.stats(); });
    expect_refused("before end_backward", [&] { d.step(0.1); });
    d.backward(3, [](uint64_t, int64_t) { return 1.0; });
    expect_refused("head.weight", [&] { d.backward(3, [](uint64_t, int64_t) { return 1.0; }); });
    expect_refused("dropped more often",
                   [&] { d.drop(ShardingDriver::use(2, CIUIC_PASS_FORWARD)); });
    expect_refused("set up already", [&] { d.check(d.vt().setup(d.self(), d.plan().c())); });
    const Error unit = error_of([&] { (void)d.bind(ShardingDriver::use(9, CIUIC_PASS_FORWARD)); });
    EXPECT_THAT(unit.what(), HasSubstr("got unit 9, there are 4"));
  });
}

TEST_F(Ddp, BindsOfOneUnitNest) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, ddp, adamw, small_model());
    d.begin();
    const auto outer = ShardingDriver::use(1, CIUIC_PASS_FORWARD);
    const auto inner = ShardingDriver::use(1, CIUIC_PASS_BACKWARD);
    ciuic_array shown{};
    ciuic_work* work = nullptr;
    d.check(d.vt().bind(d.self(), &outer, nullptr, &shown, &work));
    (void)d.bind(inner);
    EXPECT_EQ(ArrayView<ciuic_binding>(shown)[0].grad, nullptr) << "stands until its drop";
    d.drop(inner);
    d.drop(outer);
  });
}

TEST_F(Ddp, SetupRefusesWhatItCannotDo) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    const auto setup = [&](const std::function<void(ShardPlan&)>& edit) {
      ShardPlan plan(rank, small_model());
      edit(plan);
      const PluginInstance instance = ddp.create(rank.host, {}, rank.seat());
      return error_of([&] {
        instance.check(instance.table<ciuic_sharding_vt>().setup(instance.self(), plan.c()));
      });
    };
    EXPECT_EQ(setup([](ShardPlan&) {}).code(), CIUIC_OK);
    EXPECT_THAT(setup([](ShardPlan& p) { p.params()[1].sum_group = 77; }).what(),
                HasSubstr("sum_group is 77"));
    EXPECT_THAT(setup([](ShardPlan& p) { p.params()[1].granule = 0; }).what(),
                HasSubstr("granule 0"));
    EXPECT_THAT(setup([](ShardPlan& p) { p.params()[1].group = 99; }).what(),
                HasSubstr("group 99"));
    EXPECT_THAT(setup([](ShardPlan& p) { p.params()[1].id = 7; }).what(), HasSubstr("has id 7"));
    EXPECT_THAT(setup([](ShardPlan& p) { p.params()[1].tied_to = 1; }).what(), HasSubstr("tied"));
    EXPECT_THAT(setup([](ShardPlan& p) { p.params()[1].tied_to = 0; }).what(),
                HasSubstr("differs in size"));
  });
}

}  // namespace
}  // namespace ciuic::testing
