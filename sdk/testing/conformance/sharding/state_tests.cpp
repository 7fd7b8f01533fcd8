// SPDX-License-Identifier: MIT
//
// Saved on N ranks, loaded on M: the run goes on as if it had not stopped.
#include <memory>
#include <string>

#include <ciuic/testing/features.hpp>

#include "sharding_tables.h"
#include "steps.h"

namespace ciuic::testing {
namespace {

Training narrow_training(uint64_t seed) {
  Training training(seed);
  for (const uint64_t id : {TwoLayerNet::kEmbed, TwoLayerNet::kHead, TwoLayerNet::kWeight1}) {
    training.model[id].value = kBF16;
  }
  return training;
}

void require_same(const MemoryState& got, const MemoryState& expected, const std::string& when) {
  for (const auto& [key, entry] : expected.entries()) {
    require(got.has(key), when + ": " + key + " is missing");
    require(got.entry(key).data == entry.data && got.entry(key).shape == entry.shape,
            when + ": " + key + " differs in shape or bits");
  }
  require(got.entries().size() == expected.entries().size() && got.blobs() == expected.blobs(),
          when + ": there are other keys or blobs");
}

void round_trip(const TestContext& context) {
  const Training training = narrow_training(context.seed);
  MemoryState start;
  put_first_values(start, training.model);
  for (const int world : {1, 2, 3, 4}) {
    MemoryState saved;
    train(context, training, world, start, saved, 1, 3);
    require(saved.uneven().empty(),
            "state_save of " + std::to_string(world) + " ranks wrote elements never or twice");
    MemoryState again;
    train(context, training, world, saved, again, 1, 0);
    require_same(again, saved,
                 "saved, loaded and saved again on " + std::to_string(world) + " ranks");
  }
}

void other_world(const TestContext& context) {
  if (has_feature(context.plugin.descriptor(), "gradients:lossy")) {
    throw NotOffered("the plugin compresses gradients (gradients:lossy)");
  }
  const Training training = narrow_training(context.seed);
  MemoryState start;
  put_first_values(start, training.model);
  UnshardedNet<float> net(training);
  net.train(1, 10);
  for (const auto& [from, to] : {std::pair{1, 3}, std::pair{4, 2}, std::pair{3, 1}}) {
    MemoryState middle;
    MemoryState end;
    train(context, training, from, start, middle, 1, 5);
    train(context, training, to, middle, end, 6, 10);
    require_equal(end, net, training.model,
                  "5 updates on " + std::to_string(from) + " ranks and 5 on " + std::to_string(to));
  }
}

/// State per block of 4 elements moves between world sizes too.
void other_world_blocks(const TestContext& context) {
  constexpr int64_t kBlock = 4;
  Model model = small_model();
  for (ModelParam& p : model) {
    p.granule = kBlock;
  }
  const auto run = [&](int world, MemoryState& from, MemoryState& to, int steps) {
    RankGroup ranks(world);
    run_ranks(ranks, [&](Rank& rank) {
      ReferenceBlocks optimizer(rank.host.host(), kBlock);
      StepDriver d(context, rank, model, &optimizer);
      d.load(from);
      for (int i = 0; i < steps; ++i) {
        d.run_backward(
            [&](uint64_t p, int64_t e) { return rank.rank() == 0 ? whole_gradient(p, e) : 0.0; });
        (void)d.stats();
        d.step(rule_step(1));
      }
      d.save(to);
    });
  };
  MemoryState start;
  put_first_values(start, model);
  MemoryState alone;
  run(1, start, alone, 4);
  for (const auto& [from, to] : {std::pair{1, 3}, std::pair{4, 2}, std::pair{3, 1}}) {
    MemoryState middle;
    MemoryState end;
    run(from, start, middle, 2);
    run(to, middle, end, 2);
    require_same(end, alone,
                 "a rule with state per block, 2 updates on " + std::to_string(from) +
                     " ranks and 2 on " + std::to_string(to) + ", against 4 on one rank");
  }
}

/// First values come through state_load: masters from values, moments from their initial.
void first_values(const TestContext& context) {
  Model model = small_model();
  model[2].value = kBF16;
  MemoryState start;
  put_first_values(start, model);
  for (const int world : {1, 3}) {
    RankGroup ranks(world);
    MemoryState end;
    run_ranks(ranks, [&](Rank& rank) {
      ReferenceBlocks optimizer(rank.host.host(), 1);
      StepDriver d(context, rank, model, &optimizer);
      d.load(start);
      d.run_backward(whole_gradient);
      (void)d.stats();
      d.step(rule_step(1));
      d.load(start);  // replaces everything, also what the state does not have
      d.save(end);
    });
    for (uint64_t id = 0; id < model.size(); ++id) {
      for (int64_t i = 0; i < model[id].num_elements(); ++i) {
        require(stored(end, model[id]).at(i) == first_value(id, i),
                model[id].name + " is not the value that was loaded");
        require(moment(end, "block_sq", model[id]).at(i) == ReferenceBlocks::kInitial,
                "state of " + model[id].name + " that the reader has not: got " +
                    std::to_string(moment(end, "block_sq", model[id]).at(i)) +
                    ", expected state_spec's initial " + std::to_string(ReferenceBlocks::kInitial));
      }
    }
    require(end.has("master/" + model[2].name),
            "a parameter with a separate master is saved as master/<name>");
  }
}

void missing_value(const TestContext& context) {
  const Model model = small_model();
  MemoryState start;
  put_first_values(start, model);
  start.erase("value/" + model[2].name);
  RankGroup ranks(1);
  run_ranks(ranks, [&](Rank& rank) {
    ReferenceAdamW optimizer(rank.host.host());
    StepDriver d(context, rank, model, &optimizer);
    try {
      d.load(start);
    } catch (const Error& e) {
      require(std::string(e.what()).find(model[2].name) != std::string::npos,
              std::string("state_load without ") + model[2].name + " says \"" + e.what() +
                  "\": it should name the parameter");
      return;
    }
    throw CheckFailed("state_load passed although the state has no value of " + model[2].name);
  });
}

/// Two ranks hold the columns of one matrix, and a replica that one of them writes.
void pieces(const TestContext& context) {
  RankGroup ranks(2);
  ranks.add_group("piece", {{0}, {1}});
  MemoryState start;
  std::vector<double> values;
  for (int i = 0; i < 24; ++i) {
    values.push_back(i);
  }
  start.put("value/w", {4, 6}, values);
  start.put("value/norm", {3}, {1, 2, 3});
  MemoryState end;
  run_ranks(ranks, [&](Rank& rank) {
    Model model{{"w", {4, 3}, 0}, {"norm", {3}, 0}};
    model[0].group = model[1].group = "piece";
    model[0].global_shape = {4, 6};
    model[0].offset = {0, 3 * rank.rank()};
    model[1].flags =
        CIUIC_PARAM_REPLICATED | (rank.rank() == 0 ? uint32_t{CIUIC_PARAM_IN_NORM} : 0U);
    ReferenceAdamW optimizer(rank.host.host());
    StepDriver d(context, rank, model, &optimizer);
    d.load(start);
    const ciuic_use u = make_use(0, CIUIC_PASS_FORWARD);
    d.begin({u}, true, CIUIC_STEP_EVALUATE);
    const double got = StepDriver::value_at(d.bind(u)[0], 4);
    require(got == 6 + 1 + 3 * rank.rank(),
            "element (1, 1) of rank " + std::to_string(rank.rank()) + "'s columns is " +
                std::to_string(got) + ", expected " + std::to_string(7 + 3 * rank.rank()));
    d.drop(u);
    d.save(end);
  });
  require(end.uneven().empty(), "pieces and replicas were not saved exactly once: " +
                                    (end.uneven().empty() ? std::string() : end.uneven().front()));
  require(end.entry("value/w").data == start.entry("value/w").data,
          "the pieces of a model-parallel matrix do not make the whole again");
}

void exports(const TestContext& context) {
  Model model = TwoLayerNet::model();
  model[TwoLayerNet::kWeight1].value = kBF16;
  for (const int world : {1, 2, 3}) {
    MemoryState values;
    MemoryState grads;
    drive(context, world, model, [&](StepDriver& d) {
      if (!CIUIC_CAN(&d.vt(), export_roles)) {
        throw NotOffered("export_roles is not there");
      }
      d.run_backward(whole_gradient);
      (void)d.stats();
      const auto export_to = [&](uint32_t role, MemoryState& state) {
        const Host host = d.rank().host.host();
        const int32_t code =
            d.code_of(d.vt().export_roles(d.self(), 1U << role, state.writer(host)));
        if (code == CIUIC_UNIMPLEMENTED) {
          throw NotOffered("export_roles does not write role " + std::to_string(role));
        }
        require(code == CIUIC_OK,
                "export_roles of role " + std::to_string(role) + ": " + code_name(code));
      };
      export_to(CIUIC_ROLE_GRAD, grads);
      export_to(CIUIC_ROLE_VALUE, values);
      d.step(rule_step(1), CIUIC_UPDATE_SKIP);
    });
    for (const MemoryState* state : {&values, &grads}) {
      require(state->uneven().empty(), "export_roles wrote elements never or twice");
    }
    for (uint64_t id = 0; id < model.size(); ++id) {
      const ModelParam& p = model[id];
      for (int64_t i = 0; i < p.num_elements() && p.tied_to < 0; ++i) {
        require(values.entry("value/" + p.name).at(i) == first_value(id, i),
                "export_roles: value/" + p.name + " is not what layers read");
        const double uses = id == TwoLayerNet::kEmbed
                                ? whole_gradient(id, i) + whole_gradient(TwoLayerNet::kHead, i)
                                : whole_gradient(id, i);
        if (p.is_trained()) {
          require(grads.has("grad/" + p.name), "export_roles wrote no grad/" + p.name);
          require_near(grads.entry("grad/" + p.name).at(i), world * uses, 1e-6,
                       "export_roles: grad/" + p.name);
        }
      }
    }
  }
}

}  // namespace

TestTable sharding_state_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_SHARDING;
  return {
      {"sharding.state.round_trip", 3, kKind, 60,
       "save, load and save again gives the same bits; each element is written once", round_trip},
      {"sharding.state.other_world", 3, kKind, 120,
       "saved on 1, 4, 3 ranks and loaded on 3, 2, 1, a run goes on with the same bits",
       other_world},
      {"sharding.state.blocks", 3, kKind, 60, "the same with optimizer state per block",
       other_world_blocks},
      {"sharding.state.first_values", 3, kKind, 60,
       "values alone are enough to load: moments start at their initial", first_values},
      {"sharding.state.missing", 3, kKind, 30, "a parameter without a value is named",
       missing_value},
      {"sharding.state.pieces", 3, kKind, 30,
       "model-parallel pieces make the whole; of replicas one is written", pieces},
      {"sharding.export.roles", 3, kKind, 60,
       "export_roles writes values and summed gradients, each element once", exports},
  };
}

}  // namespace ciuic::testing
