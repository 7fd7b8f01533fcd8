// SPDX-License-Identifier: MIT
//
// split: parts of a group work like groups, at the same time as each other and as their parent.
#include <algorithm>

#include "communicator_suite.hpp"
#include "flight.hpp"

namespace ciuic::testing::communicator {
namespace {

/// Sums, and gathers where there are any: those show the order of ranks.
void use(Scene& scene, Group& part, int64_t count) {
  Scene inner = scene.inside(part);
  Case gather = sum_of(inner, count);
  gather.op = CIUIC_OP_ALL_GATHER;
  gather.reduce = 0;
  run_cases(inner, {sum_of(inner, count), gather, sum_of(inner, count + 1)});
  scene.tried();
}

std::vector<int32_t> ranks_like(const Scene& scene, int32_t modulus) {
  std::vector<int32_t> ranks;
  for (int32_t r = scene.group.rank() % modulus; r < scene.world(); r += modulus) {
    ranks.push_back(r);
  }
  return ranks;
}

/// A wrong order of ranks shows in what is gathered, or in who receives a broadcast.
void order(const TestContext& test) {
  on_worlds(test, {{2, 3, 4}}, [](Scene& scene) {
    need_sum(scene);
    std::vector<int32_t> ranks;
    for (int32_t r = scene.world() - 1; r >= 0; --r) {
      ranks.push_back(r);
    }
    scene.rank.note("split into one group in reverse order");
    std::optional<Group> part = scene.group.split(ranks, "reversed");
    use(scene, *part, 65);
    if (scene.group.can(CIUIC_OP_BROADCAST, 0, kF32)) {
      Scene inner = scene.inside(*part);
      Case c = sum_of(inner, 33);
      c.op = CIUIC_OP_BROADCAST;
      c.reduce = 0;
      c.root = 0;
      run_cases(inner, {c});
    }
  });
}

/// Two sets of parts at once, and the parent, in turns.
void concurrent(const TestContext& test) {
  on_worlds(test, {{4, 5, 8}}, [](Scene& scene) {
    need_sum(scene);
    std::optional<Group> odd_even = scene.group.split(ranks_like(scene, 2), "odd and even");
    const int32_t half = scene.world() / 2;
    std::vector<int32_t> side;
    for (int32_t r = 0; r < scene.world(); ++r) {
      if ((r < half) == (scene.group.rank() < half)) {
        side.push_back(r);
      }
    }
    std::optional<Group> halves = scene.group.split(side, "halves");
    for (int round = 0; round < 4; ++round) {
      Scene first = scene.inside(*odd_even);
      Scene second = scene.inside(*halves);
      const Flight a = take_off(first, sum_of(first, 100 + round));
      const Flight b = take_off(second, sum_of(second, 900 + round));
      const Flight c = take_off(scene, sum_of(scene, 10 + round));
      land(scene, c, "a sum of the whole group while two parts are at work");
      land(second, b, "a sum of half the ranks while others are at work");
      land(first, a, "a sum of every other rank while others are at work");
    }
    odd_even->destroy();
    use(scene, *halves, 50);
    halves->destroy();
    use(scene, scene.group, 50);
  });
}

void none(const TestContext& test) {
  on_worlds(test, {{1, 2, 3, 4}}, [](Scene& scene) {
    need_sum(scene);
    std::vector<int32_t> all_but_last;
    for (int32_t r = 0; r + 1 < scene.world(); ++r) {
      all_but_last.push_back(r);
    }
    scene.rank.note("split of all but the last rank");
    std::optional<Group> part = scene.group.split(
        scene.rank.is_last() ? std::vector<int32_t>{} : all_but_last, "all but the last");
    if (part) {
      use(scene, *part, 40);
      part->destroy();
    }
    scene.tried();
    use(scene, scene.group, 40);
    std::optional<Group> nobody = scene.group.split({}, "nobody");
    use(scene, scene.group, 41);
  });
}

void nested(const TestContext& test) {
  on_worlds(test, {{4, 8}}, [](Scene& scene) {
    need_sum(scene);
    std::optional<Group> part = scene.group.split(ranks_like(scene, 2), "outer");
    std::vector<int32_t> reversed;
    for (int32_t r = part->size() - 1; r >= 0; --r) {
      reversed.push_back(r);
    }
    std::optional<Group> inner = part->split(reversed, "inner");
    std::optional<Group> alone = inner->split({inner->rank()}, "alone");
    use(scene, *inner, 77);
    use(scene, *alone, 5);
    alone->destroy();
    inner->destroy();
    use(scene, *part, 77);
  });
}

/// The same split again is another group.
void again(const TestContext& test) {
  on_worlds(test, {{3}}, [](Scene& scene) {
    need_sum(scene);
    std::vector<Group> parts;
    for (int i = 0; i < 6; ++i) {
      parts.push_back(std::move(*scene.group.split({0, 1, 2}, "the same name")));
    }
    std::vector<Flight> flights;
    for (Group& part : parts) {
      Scene inner = scene.inside(part);
      flights.push_back(take_off(inner, sum_of(inner, 30 + static_cast<int64_t>(flights.size()))));
    }
    for (size_t i = parts.size(); i-- > 0;) {
      Scene inner = scene.inside(parts[i]);
      land(inner, flights[i], "one sum in each of six equal parts");
    }
    while (!parts.empty()) {
      parts.pop_back();
      use(scene, scene.group, 8);
    }
  });
}

}  // namespace

TestTable split_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_COMMUNICATOR;
  return {
      {"communicator.split.order", 3, kKind, 60, "the ranks of a part are in the order asked for",
       order},
      {"communicator.split.concurrent", 3, kKind, 60,
       "parts and their parent work at the same time; a part goes before its parent", concurrent},
      {"communicator.split.none", 3, kKind, 60, "count 0 gives no group, and the others theirs",
       none},
      {"communicator.split.nested", 3, kKind, 60, "parts have parts, down to one rank", nested},
      {"communicator.split.again", 3, kKind, 60, "the same split again is another group", again},
  };
}

}  // namespace ciuic::testing::communicator
