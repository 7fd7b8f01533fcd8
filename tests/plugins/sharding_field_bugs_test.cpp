// SPDX-License-Identifier: MIT
//
// Bugs that other systems had in the field, and the vectors for the global norm, for every strategy.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sharding_case.h"

namespace ciuic::testing {
namespace {

using ::testing::IsEmpty;

constexpr uint32_t kGradBit = 1U << CIUIC_ROLE_GRAD;

class ShardingFieldBug : public ::testing::TestWithParam<const char*> {
 protected:
  LoadedPlugin sharding = load_plugin(GetParam());
  LoadedPlugin adamw = load_plugin("adamw");

  static std::vector<ParamSpec> matrices() {
    return {{"embed", {5, 3}, 0}, {"a", {7}, 1}, {"b", {3, 5}, 1}, {"head", {5, 3}, 2}};
  }
};
INSTANTIATE_TEST_SUITE_P(Strategies, ShardingFieldBug,
                         ::testing::Values("ddp", "zero1", "zero2", "zero3"),
                         [](const auto& p) { return std::string(p.param); });

/// One value, in one rank's gradient of one parameter, that is not finite at step 5.
TEST_P(ShardingFieldBug, B014_AllRanksSkipWhenOneIsNotFinite) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (const uint64_t param : {uint64_t{0}, uint64_t{3}}) {  // parts of different ranks
      RankGroup ranks(2);
      MemoryState start;
      initialise(start, matrices());
      std::vector<std::vector<double>> after(2);
      ranks.run([&](Rank& rank) {
        ShardingDriver d(rank, sharding, adamw, matrices());
        d.instance().load(start);
        for (int step = 1; step <= 7; ++step) {
          const auto before = d.all_values();
          d.begin();
          d.backward_all([&](uint64_t p, int64_t i) {
            return step == 5 && rank.rank() == 1 && p == param && i == 14 ? bad : 1.0;
          });
          d.end_backward();
          const ciuic_grad_stats s = d.stats();
          EXPECT_EQ(s.non_finite, step == 5 ? 1U : 0U);
          if (s.non_finite > 0) {
            EXPECT_EQ(s.first_bad_param, param);
            EXPECT_EQ(s.first_bad_rank, 1);
          }
          d.step(0.1, 1, s.non_finite > 0 ? uint32_t{CIUIC_UPDATE_SKIP} : 0U);
          EXPECT_EQ(d.all_values() == before, step == 5) << "step " << step;
        }
        after[static_cast<size_t>(rank.rank())] = d.all_values();
      });
      EXPECT_EQ(after[0], after[1]);
    }
  }
}

/// Rank r brings 2 (r + 1) in parts that no world size divides: sums, not averages, in every part.
TEST_P(ShardingFieldBug, B018_UnevenPartsAreSums) {
  for (const int world : {2, 3}) {
    for (const int64_t elements : {1, 5, 7}) {
      RankGroup ranks(world);
      MemoryState state;
      ranks.run([&](Rank& rank) {
        ShardingDriver d(rank, sharding, adamw, {{"w", {elements}, 0}});
        d.begin();
        d.backward_all([&](uint64_t, int64_t) { return 2.0 * (rank.rank() + 1); });
        d.end_backward();
        (void)d.stats();
        d.export_roles(kGradBit, state);
      });
      EXPECT_THAT(state.uneven(), IsEmpty());
      EXPECT_THAT(elements_of(state, "grad/w"), ::testing::Each(world == 2 ? 6 : 12));
    }
  }
}

TEST_P(ShardingFieldBug, B019_PaddingReachesNeitherNormNorFiles) {
  const std::vector<ParamSpec> model{{"a", {7}, 0}, {"b", {3}, 1}, {"c", {1}, 2}};
  std::unique_ptr<MemoryState> first;
  for (const int world : {1, 2, 3, 4, 5}) {
    RankGroup ranks(world);
    MemoryState start;
    initialise(start, model);
    auto end = std::make_unique<MemoryState>();
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, sharding, adamw, model);
      d.instance().load(start);
      for (int step = 0; step < 10; ++step) {
        EXPECT_DOUBLE_EQ(
            d.train([&](uint64_t, int64_t) { return rank.rank() == 0 ? 1.0 : 0.0; }, 1e-2).norm,
            std::sqrt(11));
      }
      d.instance().save(*end);
    });
    EXPECT_THAT(end->uneven(), IsEmpty());
    EXPECT_EQ(end->entry("value/a").written.size() + end->entry("value/b").written.size() +
                  end->entry("value/c").written.size(),
              11U);
    if (first == nullptr) {
      first = std::move(end);
    } else {
      EXPECT_TRUE(*end == *first) << "world " << world;
    }
  }
}

/// One scalar w = 1 used as w * 2 and w * 3 by two modules in two units.
TEST_P(ShardingFieldBug, B021_TiedParametersAreOne) {
  for (const int world : {1, 2}) {
    RankGroup ranks(world);
    MemoryState start;
    start.put("value/embed", {1}, {1});
    start.put("value/other", {4}, {0, 0, 0, 0});
    MemoryState end;
    ranks.run([&](Rank& rank) {
      ShardingDriver d(
          rank, sharding, adamw,
          {{"embed", {1}, 0}, {"other", {4}, 1}, {"head", {1}, 2, CIUIC_PARAM_IN_NORM, 0}}, {},
          {{"weight_decay", 0.0}});
      d.instance().load(start);
      d.begin();
      const double share = 1.0 / world;
      d.backward(2, [&](uint64_t, int64_t) { return 3 * share; });
      d.backward(1, [](uint64_t, int64_t) { return 0.0; });
      d.backward(0, [&](uint64_t, int64_t) { return 2 * share; });
      d.end_backward();
      EXPECT_DOUBLE_EQ(d.stats().norm, 5) << "not 3.606, 7.07 or 10";
      d.step(0.1);
      const std::vector<double> all = d.all_values();
      EXPECT_EQ(all.front(), all.back()) << "one storage under both names";
      d.instance().save(end);
    });
    EXPECT_NEAR(end.entry("value/embed").at(0), 0.9, 1e-6) << "AdamW's first step is lr";
    EXPECT_FALSE(end.has("value/head"));
  }
}

TEST_P(ShardingFieldBug, B022_FrozenValuesAreSavedAndLoaded) {
  const auto model = odd_model(kBF16);
  ShardingCase c;
  c.strategy = GetParam();
  c.world = 2;
  c.model = model;
  const auto out = run_case(c);
  ASSERT_TRUE(out->state.has("value/layers.1.frozen"));
  MemoryState start;
  initialise(start, model);
  for (int64_t i = 0; i < 9; ++i) {
    const auto first = static_cast<float>(start.entry("value/layers.1.frozen").at(i));
    EXPECT_EQ(out->state.entry("value/layers.1.frozen").at(i), bf16_to_float(float_to_bf16(first)));
  }
  out->state.erase("value/layers.1.frozen");
  RankGroup ranks(2);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, sharding, adamw, model);
    const Error e = error_of([&] { d.instance().load(out->state); });
    EXPECT_EQ(e.code(), CIUIC_NOT_FOUND);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("layers.1.frozen"));
  });
}

/// A weight that is never used, and two branches used in even and odd steps; in every third step only
/// rank 0 has data for its branch.
TEST_P(ShardingFieldBug, B023_UnusedParametersHoldNobodyUp) {
  const std::vector<ParamSpec> model{
      {"stem", {4}, 0}, {"even", {5}, 1}, {"odd", {6}, 2}, {"never", {3}, 3}, {"head", {4}, 4}};
  for (const uint32_t micro_batches : {1U, 4U}) {
    RankGroup ranks(2);
    MemoryState start;
    initialise(start, model);
    MemoryState end;
    ranks.run([&](Rank& rank) {
      ShardingDriver d(rank, sharding, adamw, model, {}, {{"weight_decay", 0.0}});
      d.instance().load(start);
      for (uint32_t step = 0; step < 20; ++step) {
        const uint32_t branch = step % 2 == 0 ? 1 : 2;
        const bool is_lonely = step % 3 == 0;
        std::vector<ciuic_use> uses;
        for (uint32_t m = 0; m < micro_batches; ++m) {
          for (const uint32_t unit : {4U, branch, 0U}) {
            const bool is_idle = unit == branch && is_lonely && rank.rank() == 1;
            const bool is_last = m + 1 == micro_batches;
            uses.push_back({sizeof(ciuic_use),
                            (is_idle ? uint32_t{CIUIC_USE_IDLE} : 0U) |
                                (is_last ? uint32_t{CIUIC_USE_LAST_GRAD} : 0U),
                            static_cast<uint32_t>(uses.size()), unit, CIUIC_PASS_BACKWARD, m});
          }
        }
        d.begin(uses, micro_batches);
        for (const ciuic_use& u : uses) {
          d.walk(u, [](uint64_t, int64_t) { return 1.0; });
        }
        d.end_backward();
        const double all = 2.0 * micro_batches;
        const double some = is_lonely ? micro_batches : all;
        const double in_branch = branch == 1 ? 5 : 6;
        EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(8 * all * all + in_branch * some * some));
        d.step(0.1);
      }
      d.instance().save(end);
    });
    EXPECT_EQ(elements_of(end, "value/never"), elements_of(start, "value/never")) << "bit by bit";
    EXPECT_NE(elements_of(end, "value/odd"), elements_of(start, "value/odd"));
  }
}

TEST_P(ShardingFieldBug, B024_TheNormIsGlobal) {
  RankGroup ranks(2);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, sharding, adamw, {{"w", {2}, 0}});
    d.begin();
    d.backward_all(
        [&](uint64_t, int64_t i) { return i == rank.rank() ? 3.0 + static_cast<double>(i) : 0.0; });
    d.end_backward();
    EXPECT_EQ(d.stats().norm, 5);
    EXPECT_EQ(d.stats(0.25).norm, 1.25) << "after grad_scale";
    EXPECT_EQ(d.stats(1, CIUIC_NORM_L1).norm, 7);
    EXPECT_EQ(d.stats(-0.5, CIUIC_NORM_MAX).norm, 2);
  });
}

/// Gradients (1, 2) on rank 0 and (3, 6) on rank 1 over two micro-batches: 12 as a sum; the host
/// scales by the token count. Parameters stay equal after every step.
TEST_P(ShardingFieldBug, B030_EveryMicroBatchIsSummed) {
  RankGroup ranks(2);
  std::vector<std::vector<double>> history(2);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, sharding, adamw, {{"w", {3}, 0}});
    const std::vector<ciuic_use> uses = d.schedule(2);
    const double scale = rank.rank() == 0 ? 1 : 3;
    for (int step = 0; step < 3; ++step) {
      d.begin(uses, 2);
      for (const ciuic_use& u : uses) {
        d.walk(u, [&](uint64_t, int64_t) { return scale * (u.micro_batch + 1); });
      }
      d.end_backward();
      EXPECT_DOUBLE_EQ(d.stats().norm, 12 * std::sqrt(3));
      d.step(0.1);
      for (const double x : d.all_values()) {
        history[static_cast<size_t>(rank.rank())].push_back(x);
      }
    }
  });
  EXPECT_EQ(history[0], history[1]);
}

/// What a step logs as the norm is that of the mean gradient, at every stage (B054).
TEST_P(ShardingFieldBug, B054_OneNormForAllStages) {
  RankGroup ranks(2);
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, sharding, adamw, {{"w", {2}, 0}});
    d.begin();
    d.backward_all([&](uint64_t, int64_t i) {
      return rank.rank() == 0 ? (i == 0 ? 6.0 : 0.0) : (i == 0 ? 0.0 : 8.0);
    });
    d.end_backward();
    EXPECT_EQ(d.stats(0.5).norm, 5) << "not 6, 8 or 7";
  });
}

// ---- vectors for the norm ----

TEST_P(ShardingFieldBug, ExpertsOfEveryRankCountOnce) {  // DeepSpeed#8475: 10.954452, not 7.236068
  RankGroup ranks(2);
  ranks.add_group("expert_data", {{0}, {1}});
  ranks.run([&](Rank& rank) {
    ShardingDriver d(
        rank, sharding, adamw,
        {{"expert", {2}, 0, CIUIC_PARAM_IN_NORM | CIUIC_PARAM_EXPERT, -1, "expert_data"}});
    d.begin();
    d.backward_all([&](uint64_t, int64_t i) {
      return rank.rank() == 0 ? (i == 0 ? 2.0 : 4.0) : (i == 0 ? 6.0 : 8.0);
    });
    d.end_backward();
    EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(120));
    EXPECT_DOUBLE_EQ(d.stats(1, CIUIC_NORM_L1).norm, 20);
    EXPECT_DOUBLE_EQ(d.stats(1, CIUIC_NORM_MAX).norm, 8);
  });
}

/// VeOmni#184: the norm must not grow with the replicas of hybrid sharding.
TEST_P(ShardingFieldBug, HybridReplicasCountOnce) {
  for (const uint32_t norm : {CIUIC_NORM_L2, CIUIC_NORM_L1, CIUIC_NORM_MAX}) {
    std::vector<double> norms;
    for (const int64_t shard_ranks : {0, 1, 2, 4}) {
      RankGroup ranks(4);
      ranks.run([&](Rank& rank) {
        OptionValues options{{"shard_ranks", shard_ranks}};
        if (std::string(GetParam()) == "ddp") {
          options.clear();
        }
        ShardingDriver d(rank, sharding, adamw, matrices(), options);
        d.begin();
        d.backward_all([&](uint64_t p, int64_t i) {
          return static_cast<double>((static_cast<int64_t>(p) + i) % 4) - 1;
        });
        d.end_backward();
        const double got = d.stats(1, norm).norm;
        if (rank.rank() == 0) {
          norms.push_back(got);
        }
      });
    }
    EXPECT_THAT(norms, ::testing::Each(norms[0])) << "norm " << norm;
  }
}

/// DeepSpeed#8614: a norm of zero is a number like any other.
TEST_P(ShardingFieldBug, AZeroNormIsZero) {
  RankGroup ranks(2);
  MemoryState start;
  initialise(start, matrices());
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, sharding, adamw, matrices(), {}, {{"weight_decay", 0.0}});
    d.instance().load(start);
    const auto before = d.all_values();
    const ciuic_grad_stats s = d.train([](uint64_t, int64_t) { return 0.0; }, 0.1);
    EXPECT_EQ(s.norm, 0);
    EXPECT_EQ(s.non_finite, 0U);
    EXPECT_EQ(d.all_values(), before);
  });
}

/// hyper-parallel#526, Transformer Engine PR#715: what model-parallel ranks hold twice counts once.
TEST_P(ShardingFieldBug, DenseReplicatedAndExpertParametersGiveOneNorm) {
  RankGroup ranks(4);
  ranks.add_group("expert_data", {{0, 2}, {1, 3}});
  ranks.run([&](Rank& rank) {
    ShardingDriver d(
        rank, sharding, adamw,
        {{"dense", {3}, 0},
         {"replica", {5}, 0, CIUIC_PARAM_REPLICATED},  // counts on another model-parallel rank
         {"expert", {2}, 1, CIUIC_PARAM_IN_NORM | CIUIC_PARAM_EXPERT, -1, "expert_data"}});
    d.begin();
    d.backward_all([](uint64_t, int64_t) { return 1.0; });
    d.end_backward();
    EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(3 * 16 + 2 * 2 * 4));
  });
}

/// All tokens went to one expert on one rank: DeepSpeed#4808 hangs here. The experts of a layer are
/// one unit, which takes part on every rank.
TEST_P(ShardingFieldBug, ExpertsWithoutTokensTakePart) {
  const std::vector<ParamSpec> model{
      {"router", {4}, 0},
      {"experts.0", {6}, 1, CIUIC_PARAM_IN_NORM | CIUIC_PARAM_EXPERT},
      {"experts.1", {6}, 1, CIUIC_PARAM_IN_NORM | CIUIC_PARAM_EXPERT},
      {"head", {4}, 2}};
  RankGroup ranks(2);
  MemoryState grads;
  ranks.run([&](Rank& rank) {
    ShardingDriver d(rank, sharding, adamw, model);
    std::vector<ciuic_use> uses = d.schedule(2);
    for (ciuic_use& u : uses) {
      if (u.unit == 1 && rank.rank() == 1) {
        u.flags |= CIUIC_USE_IDLE;
      }
    }
    d.begin(uses, 2);
    for (const ciuic_use& u : uses) {
      d.walk(u, [](uint64_t param, int64_t) { return param == 2 ? 0.0 : 1.0; });
    }
    d.end_backward();
    EXPECT_DOUBLE_EQ(d.stats().norm, std::sqrt(8 * 16 + 6 * 4));
    d.export_roles(kGradBit, grads);
    d.step(0.1);
  });
  EXPECT_THAT(elements_of(grads, "grad/experts.0"), ::testing::Each(2));
  EXPECT_THAT(elements_of(grads, "grad/experts.1"), ::testing::Each(0));
  EXPECT_THAT(elements_of(grads, "grad/router"), ::testing::Each(4));
}

/// A tied embedding over pipeline stages: its gradient is also summed over a second group.
TEST_P(ShardingFieldBug, SecondSumsReachBothSides) {
  RankGroup ranks(4);
  ranks.add_group("stage", {{0, 1}, {2, 3}});
  ranks.add_group("tied", {{0, 2}, {1, 3}});
  MemoryState grads;
  ranks.run([&](Rank& rank) {
    const bool is_first = rank.rank() < 2;
    ParamSpec tied{is_first ? "embed" : "head", {7}, 0};
    ParamSpec own{is_first ? "first" : "last", {5}, 0};
    tied.group = own.group = "stage";
    tied.sum_group = "tied";
    if (!is_first) {
      tied.flags = CIUIC_PARAM_REPLICATED;  // the first stage's copy counts
    }
    ShardingDriver d(
        rank, sharding, adamw,
        is_first ? std::vector<ParamSpec>{tied, own} : std::vector<ParamSpec>{own, tied});
    d.begin();
    d.backward_all([&](uint64_t, int64_t i) { return rank.rank() + 1.0 + static_cast<double>(i); });
    d.end_backward();
    (void)d.stats();
    d.export_roles(kGradBit, grads);
  });
  for (int64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(grads.entry("grad/embed").at(i), 10.0 + 4.0 * static_cast<double>(i));
  }
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(grads.entry("grad/first").at(i), 3.0 + 2.0 * static_cast<double>(i));
    EXPECT_EQ(grads.entry("grad/last").at(i), 7.0 + 2.0 * static_cast<double>(i));
  }
}

}  // namespace
}  // namespace ciuic::testing
