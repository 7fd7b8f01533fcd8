// SPDX-License-Identifier: MIT
//
// 50 steps of the two-layer net at several world sizes against the same net in one place. Where
// every partial sum is exact, whatever the order of reduction the bits are the same.
#include <cmath>
#include <string>

#include <ciuic/testing/features.hpp>

#include "net_training.h"
#include "sharding_tables.h"

namespace ciuic::testing {
namespace {

constexpr uint64_t kUpdates = 50;

/// Sums that are exact in any order give exactly that sum, unless gradients are compressed.
void require_exact_sums(const TestContext& context) {
  if (has_feature(context.plugin.descriptor(), "gradients:lossy")) {
    throw NotOffered("the plugin compresses gradients (gradients:lossy)");
  }
}

template <typename Real>
void train_exactly(const TestContext& context, const Training& training,
                   const std::vector<int>& worlds, uint64_t updates) {
  require_exact_sums(context);
  MemoryState start;
  put_first_values(start, training.model);
  UnshardedNet<Real> net(training);
  net.train(1, updates);
  for (const int world : worlds) {
    MemoryState end;
    train(context, training, world, start, end, 1, updates);
    require_equal(end, net, training.model,
                  std::to_string(updates) + " updates on " + std::to_string(world) + " ranks");
  }
}

void exact_f32(const TestContext& context) {
  train_exactly<float>(context, Training(context.seed), {1, 2, 3, 4}, kUpdates);
}
void many_ranks(const TestContext& context) {
  train_exactly<float>(context, Training(context.seed), {7}, 10);
}
void exact_f64(const TestContext& context) {
  Training training(context.seed);
  training.set_type(kF64);
  train_exactly<double>(context, training, {1, 3}, kUpdates);
}
void bf16_values(const TestContext& context) {
  Training training(context.seed);
  for (ModelParam& p : training.model) {
    p.value = kBF16;
  }
  train_exactly<float>(context, training, {1, 2, 3}, kUpdates);
}
void unannounced(const TestContext& context) {
  Training training(context.seed);
  training.uses_are_known = false;
  train_exactly<float>(context, training, {1, 2}, 10);
  training.announces_last = false;
  train_exactly<float>(context, training, {1, 3}, 10);
}
void split_backward(const TestContext& context) {
  Training training(context.seed);
  training.splits_backward = true;
  train_exactly<float>(context, training, {1, 2}, 10);
}
void hyperparameters(const TestContext& context) {
  Training training(context.seed);
  training.model[TwoLayerNet::kBias0].weight_decay = 0;
  training.model[TwoLayerNet::kBias1].weight_decay = 0.5;
  training.model[TwoLayerNet::kEmbed].lr_scale = 0.25;
  training.model[TwoLayerNet::kScale].lr_scale = 2;
  train_exactly<float>(context, training, {1, 2, 3}, 10);
}

/// Gradients as they come, in fp32, against fp64 throughout.
void close_to_f64(const TestContext& context) {
  // Sums over ranks round in another order, and AdamW divides by the root of what it saw: an error
  // of a gradient moves a value by at most about lr times its relative error. lr is at most 0.03;
  // 2^-11 of it a step is 2^13 units in the last place of fp32, more than cancellation costs here.
  constexpr double kBound = 50 * 0.03 / 2048;
  Training training(context.seed, 0);
  MemoryState start;
  put_first_values(start, training.model);
  UnshardedNet<double> net(training);
  net.train(1, kUpdates);
  for (const int world : {1, 2, 3, 4}) {
    MemoryState end;
    train(context, training, world, start, end, 1, kUpdates);
    require_equal(end, net, training.model, "50 updates on " + std::to_string(world) + " ranks",
                  kBound);
  }
}

/// The rule needs blocks whole: a shard that cuts one gives other numbers.
void blocks(const TestContext& context) {
  constexpr int64_t kBlock = 4;
  Training training(context.seed);
  for (ModelParam& p : training.model) {
    p.granule = kBlock;
  }
  const auto run = [&](int world) {
    auto start = std::make_unique<MemoryState>();
    auto end = std::make_unique<MemoryState>();
    put_first_values(*start, training.model);
    RankGroup ranks(world);
    run_ranks(ranks, [&](Rank& rank) {
      ReferenceBlocks optimizer(rank.host.host(), kBlock);
      StepDriver driver(context, rank, training.model, &optimizer);
      driver.load(*start);
      for (uint64_t update = 1; update <= 5; ++update) {
        run_passes(driver, training, update);
        (void)driver.stats();
        driver.step(rule_step(update));
      }
      driver.save(*end);
    });
    return end;
  };
  require_exact_sums(context);
  const auto alone = run(1);
  for (const int world : {2, 3, 4}) {
    const auto end = run(world);
    for (const ModelParam& p : training.model) {
      if (!p.is_trained() || p.num_elements() == 0) {
        continue;
      }
      require(stored(*end, p).data == stored(*alone, p).data,
              "a rule with granule 4 gave other values of " + p.name + " on " +
                  std::to_string(world) + " ranks than on 1");
      require(moment(*end, "block_sq", p).data == moment(*alone, "block_sq", p).data,
              "the state per block of " + p.name + " differs between " + std::to_string(world) +
                  " ranks and 1");
    }
    require(end->uneven().empty(), "state per block was not saved exactly once");
  }
}

}  // namespace

TestTable sharding_training_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_SHARDING;
  return {
      {"sharding.train.exact_f32", 3, kKind, 120,
       "50 fp32 updates on 1 to 4 ranks have the bits of the unsharded run", exact_f32},
      {"sharding.train.exact_f64", 3, kKind, 120, "the same with every tensor in fp64", exact_f64},
      {"sharding.train.close", 3, kKind, 120,
       "50 fp32 updates with arbitrary gradients stay near the unsharded run in fp64",
       close_to_f64},
      {"sharding.train.bf16_values", 3, kKind, 120,
       "bf16 values with fp32 masters have the bits of the unsharded run", bf16_values},
      {"sharding.train.many_ranks", 3, kKind, 120,
       "7 ranks: more than a parameter has elements, some without data", many_ranks},
      {"sharding.train.blocks", 3, kKind, 120,
       "a rule with blocks of 4 gives the same bits at every world size", blocks},
      {"sharding.train.unannounced", 3, kKind, 60,
       "uses that begin_step did not list, and no word of the last gradient", unannounced},
      {"sharding.train.split_backward", 3, kKind, 60,
       "input gradients and weight gradients in passes of their own", split_backward},
      {"sharding.train.hyperparameters", 3, kKind, 60,
       "each parameter moves by its own lr_scale and weight_decay", hyperparameters},
  };
}

}  // namespace ciuic::testing
