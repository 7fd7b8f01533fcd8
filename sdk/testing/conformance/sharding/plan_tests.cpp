// SPDX-License-Identifier: MIT
//
// plan: extents cover every element, shards of different ranks do not overlap, granules stay whole,
// and the answer depends on the request alone.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <ciuic/testing/step_driver.hpp>
#include <ciuic/testing/two_layer_net.hpp>

#include "net_training.h"
#include "sharding_tables.h"

namespace ciuic::testing {
namespace {

using Extents = std::vector<ciuic_extent>;

std::string text_of(const ciuic_extent& e) {
  return "parameter " + std::to_string(e.param) + " [" + std::to_string(e.begin) + ", " +
         std::to_string(e.end) + ") owner " + std::to_string(e.owner) + " role " +
         std::to_string(e.role) + " " + dtype_name(e.dtype);
}
auto key_of(const ciuic_extent& e) {
  return std::make_tuple(e.param, e.role, e.begin, e.end, e.owner, e.dtype.code, e.dtype.bits,
                         e.flags);
}
void sort(Extents& extents) {
  std::sort(extents.begin(), extents.end(),
            [](const ciuic_extent& a, const ciuic_extent& b) { return key_of(a) < key_of(b); });
}
void require_same(const Extents& got, const Extents& expected, const std::string& when) {
  for (size_t i = 0; i < std::max(got.size(), expected.size()); ++i) {
    const bool is_same =
        i < got.size() && i < expected.size() && key_of(got[i]) == key_of(expected[i]);
    require(is_same, when + ": plan gave " + (i < got.size() ? text_of(got[i]) : "nothing more") +
                         ", expected " +
                         (i < expected.size() ? text_of(expected[i]) : "nothing more") +
                         "; plan is pure: a function of its request");
  }
}

/// The net in bf16 with masters, and shapes that do not fit: more ranks than elements, primes.
std::vector<Model> models() {
  Model narrow = TwoLayerNet::model();
  for (ModelParam& p : narrow) {
    p.value = kBF16;
  }
  Model odd{{"scalar", {}, 0}, {"prime", {13}, 0}, {"two", {2}, 1}, {"matrix", {11, 3}, 1}};
  return {TwoLayerNet::model(), narrow, odd};
}

/// Asks one rank's instance; a new one each time.
class Planner {
 public:
  Planner(const TestContext& context, Rank& rank, const Model& model, int64_t granule = 0)
      : optimizer_(make(rank, granule)),
        driver_(context, rank, with_granule(model, granule), optimizer_.get(), false),
        silent_(rank, with_granule(model, granule)) {
    silent_.silence();
  }
  /// Where no group can be talked to.
  Extents plan(uint32_t flags = 0) {
    silent_.set_flags(flags);
    return ask(silent_);
  }
  Extents plan_with_groups() { return ask(driver_.plan()); }
  [[nodiscard]] const ModelPlan& request() const { return silent_; }
  [[nodiscard]] uint32_t num_states(uint64_t param) const {
    return static_cast<uint32_t>(optimizer_->state_spec(silent_.params()[param]).size());
  }

 private:
  static std::unique_ptr<ReferenceOptimizer> make(Rank& rank, int64_t granule) {
    if (granule > 0) {
      return std::make_unique<ReferenceBlocks>(rank.host.host(), granule);
    }
    return std::make_unique<ReferenceAdamW>(rank.host.host());
  }
  static Model with_granule(Model model, int64_t granule) {
    for (ModelParam& p : model) {
      p.granule = std::max<int64_t>(granule, 1);
    }
    return model;
  }
  Extents ask(const ModelPlan& request) {
    ciuic_array shown{};
    driver_.check(driver_.vt().plan(driver_.self(), request.c(), &shown));
    Extents out;
    for (const ciuic_extent& e : ArrayView<ciuic_extent>(shown)) {
      out.push_back(e);
    }
    sort(out);
    return out;
  }

  std::unique_ptr<ReferenceOptimizer> optimizer_;
  StepDriver driver_;
  ModelPlan silent_;
};

ciuic_dtype dtype_of_role(const ModelParam& p, uint32_t role) {
  switch (role) {
    case CIUIC_ROLE_VALUE:
      return p.value;
    case CIUIC_ROLE_GRAD:
      return p.grad;
    case CIUIC_ROLE_REDUCE:
      return p.reduce;
    case CIUIC_ROLE_MASTER:
      return p.master;
    default:
      return kF32;  // the reference optimizers' state
  }
}

void require_sane(const Extents& extents, const ModelPlan& request) {
  for (const ciuic_extent& e : extents) {
    require(e.param < request.model().size(), "plan: " + text_of(e) + ": there are " +
                                                  std::to_string(request.model().size()) +
                                                  " parameters");
    const ModelParam& p = request.model()[e.param];
    require(e.begin >= 0 && e.begin <= e.end && e.end <= p.num_elements(),
            "plan: " + text_of(e) + ": the parameter has " + std::to_string(p.num_elements()) +
                " elements");
    require(e.owner >= 0 && e.owner < request.group_of(e.param).size,
            "plan: " + text_of(e) + ": its group has " +
                std::to_string(request.group_of(e.param).size) + " ranks");
    require(e.role >= CIUIC_ROLE_VALUE && e.role <= CIUIC_ROLE_MOMENT,
            "plan: " + text_of(e) + ": not a role that a sharding holds");
    require(same(e.dtype, dtype_of_role(p, e.role)),
            "plan: " + text_of(e) + ": the request says " + dtype_name(dtype_of_role(p, e.role)));
    require(!p.is_frozen() || e.role == CIUIC_ROLE_VALUE,
            "plan: " + text_of(e) + ": a frozen parameter has values only");
  }
}

/// How many copies of each element a role has; ranges of two owners are equal or disjoint.
std::vector<int> cover(const Extents& extents, uint64_t param, uint32_t role, int64_t count) {
  std::vector<int> copies(static_cast<size_t>(count));
  for (const ciuic_extent& a : extents) {
    if (a.param != param || a.role != role) {
      continue;
    }
    for (int64_t i = a.begin; i < a.end; ++i) {
      ++copies[static_cast<size_t>(i)];
    }
    for (const ciuic_extent& b : extents) {
      const bool is_pair = b.param == param && b.role == role && b.owner != a.owner;
      const bool is_disjoint = !is_pair || b.end <= a.begin || a.end <= b.begin;
      require(is_disjoint || (a.begin == b.begin && a.end == b.end),
              "plan: " + text_of(a) + " and " + text_of(b) +
                  " overlap in part: shards are disjoint or replicas");
    }
  }
  return copies;
}

void require_covered(const Extents& extents, Planner& planner) {
  const Model& model = planner.request().model();
  for (uint64_t id = 0; id < model.size(); ++id) {
    const ModelParam& p = model[id];
    const auto check = [&](uint32_t role, int states) {
      const std::vector<int> copies = cover(extents, id, role, p.num_elements());
      const int most = states * planner.request().group_of(id).size;
      for (size_t i = 0; i < copies.size(); ++i) {
        require(copies[i] > 0, "plan: element " + std::to_string(i) + " of " + p.name +
                                   " is in no extent of role " + std::to_string(role) +
                                   ": nobody holds it");
        require(copies[i] <= most && copies[i] % std::max(states, 1) == 0,
                "plan: element " + std::to_string(i) + " of " + p.name + " is in " +
                    std::to_string(copies[i]) + " extents of role " + std::to_string(role) +
                    ", expected one per replica" + (states > 1 ? " and state tensor" : ""));
      }
    };
    if (p.tied_to >= 0) {
      continue;  // its storage is another's
    }
    check(CIUIC_ROLE_VALUE, 1);
    if (p.is_trained()) {
      check(CIUIC_ROLE_MOMENT, static_cast<int>(planner.num_states(id)));
    }
    if (p.has_master()) {
      check(CIUIC_ROLE_MASTER, 1);
    }
  }
}

void covers(const TestContext& context) {
  for (const int world : {1, 2, 3, 4, 7}) {
    for (const Model& model : models()) {
      RankGroup ranks(world);
      Planner planner(context, ranks.rank(0), model);
      const Extents extents = planner.plan();
      require_sane(extents, planner.request());
      require_covered(extents, planner);
    }
  }
}

void keeps_granules(const TestContext& context) {
  for (const int world : {1, 2, 3, 4}) {
    for (const int64_t granule : {4, 64}) {
      RankGroup ranks(world);
      Planner planner(context, ranks.rank(0), models().front(), granule);
      const Extents extents = planner.plan();
      require_sane(extents, planner.request());
      require_covered(extents, planner);
      for (const ciuic_extent& e : extents) {
        const int64_t count = planner.request().model()[e.param].num_elements();
        const auto is_edge = [&](int64_t at) { return at % granule == 0 || at == count; };
        const bool is_shard = e.role == CIUIC_ROLE_MOMENT || e.role == CIUIC_ROLE_MASTER;
        require(
            !is_shard || (is_edge(e.begin) && is_edge(e.end)),
            "plan: " + text_of(e) + " cuts a granule of " + std::to_string(granule) + " elements");
      }
    }
  }
}

void is_pure(const TestContext& context) {
  for (const Model& model : models()) {
    RankGroup ranks(3);
    Planner planner(context, ranks.rank(1), model);
    const Extents first = planner.plan();
    for (int i = 0; i < 50; ++i) {
      require_same(planner.plan(), first, "asked again");
    }
    require_same(planner.plan_with_groups(), first, "asked with groups that can be talked to");
    for (const char* name : {"data", "world", "control"}) {
      require(ranks.meeting(name).pending() == 0,
              std::string("plan submitted a collective to group ") + name + "; it is pure");
    }
  }
  RankGroup ranks(3);
  Extents first;
  for (int i = 0; i < 3; ++i) {
    Planner planner(context, ranks.rank(1), models().front());
    first = i == 0 ? planner.plan() : first;
    require_same(planner.plan(), first, "asked of another instance");
  }
}

void same_on_all_ranks(const TestContext& context) {
  for (const int world : {2, 3, 4}) {
    for (const Model& model : models()) {
      RankGroup ranks(world);
      Extents first;
      for (int r = 0; r < world; ++r) {
        Planner planner(context, ranks.rank(r), model);
        const Extents all = planner.plan();
        first = r == 0 ? all : first;
        require_same(all, first, "asked on rank " + std::to_string(r) + " instead of rank 0");
        Extents own;
        for (const ciuic_extent& e : all) {
          if (e.owner == r) {
            own.push_back(e);
          }
        }
        require_same(planner.plan(CIUIC_PLAN_OWN), own, "asked with PLAN_OWN");
      }
    }
  }
}

/// State is where the update happens: each rank updates as many elements as it has moments of.
void moments_are_where_updates_are(const TestContext& context) {
  for (const int world : {1, 2, 3, 4}) {
    const Training training(context.seed);
    MemoryState start;
    put_first_values(start, training.model);
    RankGroup ranks(world);
    run_ranks(ranks, [&](Rank& rank) {
      ReferenceAdamW optimizer(rank.host.host());
      StepDriver driver(context, rank, training.model, &optimizer);
      driver.load(start);
      run_passes(driver, training, 1);
      (void)driver.stats();
      driver.step(rule_step(1));
      int64_t updated = 0;
      for (const SeenUpdate& u : optimizer.take_seen()) {
        updated += u.num_elements;
      }
      ciuic_array shown{};
      driver.check(driver.vt().plan(driver.self(), driver.plan().c(), &shown));
      int64_t planned = 0;
      for (const ciuic_extent& e : ArrayView<ciuic_extent>(shown)) {
        const bool is_own = e.role == CIUIC_ROLE_MOMENT && e.owner == rank.rank();
        planned += is_own ? e.end - e.begin : 0;
      }
      require(updated * 2 == planned,
              "rank " + std::to_string(rank.rank()) + " of " + std::to_string(world) + " updated " +
                  std::to_string(updated) + " elements; its moments hold " +
                  std::to_string(planned) + " elements in two state tensors");
    });
  }
}

}  // namespace

TestTable sharding_plan_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_SHARDING;
  return {
      {"sharding.plan.covers", 3, kKind, 30,
       "extents of values, masters and moments cover every element; shards do not overlap", covers},
      {"sharding.plan.granules", 3, kKind, 30, "no shard of optimizer state cuts a granule",
       keeps_granules},
      {"sharding.plan.pure", 3, kKind, 30,
       "plan is a function of its request, works on silent groups, and talks to nobody", is_pure},
      {"sharding.plan.ranks", 3, kKind, 30,
       "all ranks plan the same extents; PLAN_OWN is the rank's own part", same_on_all_ranks},
      {"sharding.plan.updates", 3, kKind, 60,
       "each rank updates exactly the elements whose moments the plan gives it",
       moments_are_where_updates_are},
  };
}

}  // namespace ciuic::testing
