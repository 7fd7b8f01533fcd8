// SPDX-License-Identifier: MIT
//
// Collectives that move bytes, of every type, fp8 among them: what arrives has the bits that left.
#include <chrono>
#include <thread>

#include "communicator_suite.hpp"
#include "run_cases.hpp"

namespace ciuic::testing::communicator {
namespace {

const std::vector<Spread> kUneven{Spread::Packed, Spread::Gaps, Spread::Reversed};

template <uint32_t kOp>
void even(const TestContext& test) {
  const bool has_in_place = kOp == CIUIC_OP_ALL_GATHER;
  on_worlds(test, {}, [=](Scene& scene) {
    run_cases(scene, sweep(scene, {kOp, 0, has_in_place}, kMovedTypes, kCounts));
  });
}

template <uint32_t kOp>
void uneven(const TestContext& test) {
  const bool has_in_place = kOp == CIUIC_OP_ALL_GATHER;
  on_worlds(test, {}, [=](Scene& scene) {
    run_cases(scene, sweep(scene, {kOp, 0, has_in_place, kUneven}, kMovedTypes,
                           {0, 1, 2, 3, 7, 128, 129, 1023}));
  });
}

void every_root(const TestContext& test) {
  on_worlds(test, {}, [](Scene& scene) {
    std::vector<Case> cases;
    for (int32_t root = 0; root < scene.world(); ++root) {
      for (const int64_t count : {0, 1, 129}) {
        for (const uint32_t op : {CIUIC_OP_BROADCAST, CIUIC_OP_GATHER, CIUIC_OP_SCATTER}) {
          Case c;
          c.op = op;
          c.count = count;
          c.root = root;
          c.salt = mix(scene.test.seed, cases.size());
          cases.push_back(c);
        }
      }
    }
    run_cases(scene, cases);
  });
}

void big(const TestContext& test) {
  on_worlds(test, {{1, 2, 3}, 60 * kSecond}, [](Scene& scene) {
    std::vector<Case> cases;
    for (const uint32_t op : {CIUIC_OP_ALL_GATHER, CIUIC_OP_BROADCAST, CIUIC_OP_ALL_TO_ALL}) {
      Case c;
      c.op = op;
      c.dtype = op == CIUIC_OP_BROADCAST ? kU8 : kI64;
      c.count = op == CIUIC_OP_BROADCAST ? kBigCount : kBigCount / 8;
      c.root = scene.world() - 1;
      c.salt = scene.test.seed;
      cases.push_back(c);
    }
    run_cases(scene, cases);
  });
}

/// Nobody may leave before the last one has come.
void barrier_waits(const TestContext& test) {
  on_worlds(test, {{1, 2, 3, 4, 8}}, [](Scene& scene) {
    if (!scene.group.can(CIUIC_OP_BARRIER, 0, kU8)) {
      throw NotOffered("capabilities deny BARRIER");
    }
    for (int round = 0; round < 3; ++round) {
      const std::string key = "test/came" + std::to_string(round);
      const bool is_late = scene.rank.rank() == round % scene.world();
      std::this_thread::sleep_for(std::chrono::milliseconds(is_late ? 30 : 0));
      scene.rank.store().add(key, 1);
      scene.group.barrier(scene.patient(20 * kSecond));
      const int64_t came = scene.rank.store().add(key, 0);
      require(came == scene.world(), "a barrier of " + std::to_string(scene.world()) +
                                         " ranks let rank " + std::to_string(scene.rank.rank()) +
                                         " go when " + std::to_string(came) +
                                         " had come; expected all");
      scene.tried();
    }
  });
}

}  // namespace

TestTable movement_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_COMMUNICATOR;
  return {
      {"communicator.all_gather.even", 3, kKind, 60, "every rank gets every rank's bits",
       even<CIUIC_OP_ALL_GATHER>},
      {"communicator.all_gather.uneven", 3, kKind, 60,
       "parts of any sizes go to any offsets and nothing between them is touched, where UNEVEN",
       uneven<CIUIC_OP_ALL_GATHER>},
      {"communicator.broadcast.bits", 3, kKind, 60, "every rank gets the root's bits",
       even<CIUIC_OP_BROADCAST>},
      {"communicator.gather.even", 3, kKind, 60, "the root gets every rank's bits",
       even<CIUIC_OP_GATHER>},
      {"communicator.gather.uneven", 3, kKind, 60, "the root gets parts of any sizes, where UNEVEN",
       uneven<CIUIC_OP_GATHER>},
      {"communicator.scatter.even", 3, kKind, 60, "every rank gets its part from the root",
       even<CIUIC_OP_SCATTER>},
      {"communicator.scatter.uneven", 3, kKind, 60,
       "the root gives parts of any sizes, where UNEVEN", uneven<CIUIC_OP_SCATTER>},
      {"communicator.all_to_all.even", 3, kKind, 60, "every rank gets its part from every rank",
       even<CIUIC_OP_ALL_TO_ALL>},
      {"communicator.all_to_all.uneven", 3, kKind, 60,
       "every pair of ranks exchanges as much as it likes, where UNEVEN",
       uneven<CIUIC_OP_ALL_TO_ALL>},
      {"communicator.rooted.every_root", 3, kKind, 60, "any rank can be the root", every_root},
      {"communicator.moved.big", 3, kKind, 60, "2^20 + 1 elements arrive", big},
      {"communicator.barrier.waits", 3, kKind, 60, "nobody leaves a barrier before all have come",
       barrier_waits},
  };
}

}  // namespace ciuic::testing::communicator
