// SPDX-License-Identifier: MIT
//
// Strategies against ddp at the same world size: worlds 1 to 4, hybrid groups, accumulation, number
// formats, buckets, late and poor transports.
//
// Equal bits are expected where every sum is made in the same order. Two things change the order:
// zero2 and zero3 reduce each micro-batch and then accumulate, where ddp accumulates first; hybrid
// groups sum inside and then across. There values differ by rounding: one step of fp32 is 6e-8 of a
// gradient, all of one sign here, and AdamW moves a value by at most lr = 1e-2 times that a step.
#include <string>

#include <gtest/gtest.h>

#include "sharding_case.h"

namespace ciuic::testing {
namespace {

constexpr double kReordered = 1e-6;  // of values and moments below 1; see above

ShardingCase with(ShardingCase c, const std::string& strategy, const std::string& key = {},
                  int64_t value = 0) {
  c.strategy = strategy;
  if (!key.empty()) {
    c.options = {{key, value}};
  }
  return c;
}

TEST(ShardingMatrix, StrategiesEqualDdp) {
  for (const ciuic_dtype value : {kF32, kBF16}) {
    for (const int world : {1, 2, 3, 4}) {
      for (const uint32_t micro_batches : {1U, 4U}) {
        ShardingCase c;
        c.world = world;
        c.micro_batches = micro_batches;
        c.model = odd_model(value);
        const auto expected = run_case(c);
        for (const char* strategy : {"zero1", "zero2", "zero3"}) {
          const ShardingCase other = with(c, strategy);
          const auto got = run_case(other);
          const bool is_same_order = world == 1 || micro_batches == 1 || other.strategy == "zero1";
          EXPECT_LE(difference(got->state, expected->state), is_same_order ? 0 : kReordered)
              << other.text() << " " << dtype_name(value);
          for (size_t i = 0; i < expected->norms.size(); ++i) {
            EXPECT_NEAR(got->norms[i], expected->norms[i], 1e-6 * expected->norms[i])
                << other.text();
          }
        }
      }
    }
  }
}

TEST(ShardingMatrix, HybridGroupsEqualDdp) {
  for (const uint32_t micro_batches : {1U, 4U}) {
    for (const int64_t shard_ranks : {1, 2, 4}) {
      ShardingCase c;
      c.world = 4;
      c.micro_batches = micro_batches;
      c.model = odd_model(kBF16);
      const auto expected = run_case(c);
      for (const char* strategy : {"zero1", "zero2", "zero3"}) {
        const ShardingCase other = with(c, strategy, "shard_ranks", shard_ranks);
        const auto got = run_case(other);
        EXPECT_LE(difference(got->state, expected->state), kReordered)
            << other.text() << " shard_ranks " << shard_ranks;
        for (size_t i = 0; i < expected->norms.size(); ++i) {
          EXPECT_NEAR(got->norms[i], expected->norms[i], 1e-6 * expected->norms[i])
              << other.text() << " shard_ranks " << shard_ranks;
        }
      }
    }
  }
}

TEST(ShardingMatrix, ShardRanksMustDivide) {
  RankGroup ranks(4);
  const Error e = error_of([&] {
    ranks.run([&](Rank& rank) {
      const ShardingDriver d(rank, load_plugin("zero1"), load_plugin("adamw"), odd_model(),
                             {{"shard_ranks", int64_t{3}}});
    });
  });
  EXPECT_EQ(e.code(), CIUIC_INVALID);
  EXPECT_NE(std::string(e.what()).find("shard_ranks = 3 does not divide the 4 ranks"),
            std::string::npos)
      << e.what();
}

// B026: a race between backward that writes a bucket and the transport that reads it.
TEST(ShardingMatrix, FieldBug_B026_BitsDependNeitherOnBucketsNorOnTheTransport) {
  for (const char* strategy : {"ddp", "zero1", "zero2", "zero3"}) {
    ShardingCase c;
    c.strategy = strategy;
    c.world = 2;
    c.micro_batches = 2;
    c.steps = 5;
    const auto expected = run_case(c);
    for (const int64_t bucket : {int64_t{1}, int64_t{256}, int64_t{1} << 20}) {
      for (const int delay : {-1, 0, 1, 20}) {
        ShardingCase other = with(c, strategy, "bucket_size", bucket);
        other.delay_ms = delay < 0 ? std::nullopt : std::optional<int>(delay);
        other.steps = delay == 20 ? 2 : c.steps;
        ShardingCase same_steps = c;
        same_steps.steps = other.steps;
        const auto reference = delay == 20 ? run_case(same_steps) : nullptr;
        const MemoryState& want = reference ? reference->state : expected->state;
        EXPECT_TRUE(run_case(other)->state == want)
            << other.text() << " bucket " << bucket << " delay " << delay;
      }
    }
  }
}

TEST(ShardingMatrix, PadsWhereATransportKnowsEvenPartsOnly) {
  for (const int world : {2, 3}) {
    for (const char* strategy : {"zero1", "zero2", "zero3"}) {
      ShardingCase c;
      c.world = world;
      c.strategy = strategy;
      c.micro_batches = 2;
      const auto expected = run_case(c);
      c.denied = CIUIC_COMM_UNEVEN;
      const auto got = run_case(c);
      EXPECT_TRUE(got->state == expected->state) << c.text();
      EXPECT_EQ(got->norms, expected->norms) << c.text();
    }
  }
}

TEST(ShardingMatrix, UnannouncedUsesChangeNothing) {
  for (const char* strategy : {"zero2", "zero3"}) {
    ShardingCase c;
    c.strategy = strategy;
    c.world = 3;
    c.micro_batches = 2;
    const auto expected = run_case(c);
    c.announces_uses = false;
    EXPECT_TRUE(run_case(c)->state == expected->state) << c.text();
  }
}

TEST(ShardingMatrix, GradientsTravelInTheReduceType) {
  // Whole numbers below 256 are exact in bf16, and so are their sums here: the same bits as fp32.
  for (const char* strategy : {"ddp", "zero1", "zero2", "zero3"}) {
    ShardingCase c;
    c.strategy = strategy;
    c.world = 4;
    c.micro_batches = 2;
    c.gradient = [](uint64_t step, uint32_t slot, uint64_t param, int64_t i) {
      return static_cast<double>((step + slot + param + static_cast<uint64_t>(i)) % 5);
    };
    const auto expected = run_case(c);
    for (ParamSpec& p : c.model) {
      p.reduce = kBF16;
    }
    EXPECT_TRUE(run_case(c)->state == expected->state) << c.text();
    if (c.strategy != "ddp") {
      c.options = {{"shard_ranks", int64_t{2}}};
      EXPECT_TRUE(run_case(c)->state == expected->state) << c.text() << " hybrid";
    }
  }
}

TEST(ShardingMatrix, AStateMovesBetweenStrategiesAndWorlds) {
  ShardingCase c;
  c.world = 4;
  c.model = odd_model(kBF16);
  const auto saved = run_case(c);
  const std::vector<std::pair<std::string, int>> seats{
      {"zero3", 3}, {"zero1", 2}, {"ddp", 1}, {"zero2", 4}};
  for (const auto& [strategy, world] : seats) {
    RankGroup ranks(world);
    MemoryState again;
    ranks.run([&, name = strategy](Rank& rank) {
      ShardingDriver d(rank, load_plugin(name), load_plugin("adamw"), c.model);
      d.instance().load(saved->state);
      EXPECT_EQ(d.all_values(), saved->values[0]) << name;
      d.instance().save(again);
    });
    EXPECT_TRUE(again == saved->state) << strategy << " world " << world;
  }
}

TEST(ShardingMatrix, OffloadOnTheCpuSaysThatItIsNothing) {
  RankGroup ranks(1);
  ranks.run([&](Rank& rank) {
    const ShardingDriver d(rank, load_plugin("zero2"), load_plugin("adamw"), odd_model(),
                           {{"offload", std::string("cpu")}});
    EXPECT_TRUE(rank.host.logged("changes nothing here"));
  });
}

}  // namespace
}  // namespace ciuic::testing
