// SPDX-License-Identifier: MIT
//
// Instances come and go: many in a row, two at once, quiesced and resumed; nothing is left behind.
#include <chrono>
#include <thread>

#include "communicator_suite.hpp"
#include "flight.hpp"
#include "process_usage.hpp"

namespace ciuic::testing::communicator {
namespace {

void one_life(Scene& scene, int number) {
  scene.rank.note("instance " + std::to_string(number));
  Group group = Group::create(scene.test, scene.rank);
  Scene inner(scene.test, scene.rank, group);
  land(inner, take_off(inner, sum_of(inner, 100 + number)),
       "instance " + std::to_string(number) + " of a row");
}

/// Threads may take a moment to be gone.
void expect_no_more_than(int64_t before, int64_t (*count)(), const std::string& what) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (count() > before && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  require(count() <= before,
          what + ": got " + std::to_string(count()) + ", before it were " + std::to_string(before));
}

void many_in_a_row(const TestContext& test) {
  on_worlds(test, {{1, 2, 3}}, [](Scene& scene) {
    need_sum(scene);
    one_life(scene, 0);  // what a plugin sets up once per process
    scene.rank.meet("first life");
    const int64_t threads = num_threads();
    const int64_t files = num_open_files();
    for (int i = 1; i <= 20; ++i) {
      one_life(scene, i);
    }
    expect_no_more_than(threads, num_threads, "threads after 20 instances");
    expect_no_more_than(files, num_open_files, "open files after 20 instances");
    scene.tried();
  });
}

void two_at_once(const TestContext& test) {
  on_worlds(test, {{1, 2, 3}}, [](Scene& scene) {
    need_sum(scene);
    Group other = Group::create(scene.test, scene.rank);
    Scene second(scene.test, scene.rank, other);
    for (int i = 0; i < 10; ++i) {
      const Flight a = take_off(scene, sum_of(scene, 100 + i));
      const Flight b = take_off(second, sum_of(second, 500 + i));
      land(second, b, "two instances at once, the second");
      land(scene, a, "two instances at once, the first");
    }
    other.destroy();
    land(scene, take_off(scene, sum_of(scene, 7)), "an instance whose sister was destroyed");
  });
}

void quiesce_resume(const TestContext& test) {
  on_worlds(test, {{1, 2, 3}}, [](Scene& scene) {
    need_sum(scene);
    const ciuic_descriptor& d = scene.group.descriptor();
    if (!CIUIC_CAN(&d, quiesce) || !CIUIC_CAN(&d, resume)) {
      throw NotOffered("the plugin has no quiesce and resume");
    }
    for (int round = 0; round < 3; ++round) {
      std::vector<Flight> flights;
      for (int i = 0; i < 8; ++i) {
        flights.push_back(take_off(scene, sum_of(scene, 10 + i)));
      }
      scene.rank.note("quiesce");
      scene.group.quiesce(scene.patient(20 * kSecond));
      for (const Flight& flight : flights) {
        int32_t done = 1;
        if (flight.work) {
          scene.group.host().check(flight.work.get()->ops->test(flight.work.get(), &done));
        }
        require(done == 1, "quiesce has returned and a work is not done");
        land(scene, flight, "a sum before quiesce");
      }
      scene.rank.meet("quiesced " + std::to_string(round));
      scene.group.resume();
    }
    land(scene, take_off(scene, sum_of(scene, 99)), "a sum after resume");
  });
}

void healthy(const TestContext& test) {
  on_worlds(test, {{1, 2, 3}}, [](Scene& scene) {
    need_sum(scene);
    for (int i = 0; i < 3; ++i) {
      const std::optional<Error> health = scene.group.health();
      require(!health, "health of a group where all is well: got " +
                           std::string(health ? health->what() : "") + ", expected ok");
      land(scene, take_off(scene, sum_of(scene, 12)), "a sum between two calls of health");
      scene.rank.meet("round " + std::to_string(i));
    }
  });
}

}  // namespace

TestTable life_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_COMMUNICATOR;
  return {
      {"communicator.life.many_in_a_row", 3, kKind, 60,
       "20 instances in a row reuse ports and keys, and leave no thread or file", many_in_a_row},
      {"communicator.life.two_at_once", 3, kKind, 60, "two instances do not disturb each other",
       two_at_once},
      {"communicator.life.quiesce_resume", 3, kKind, 60, "quiesce drains, resume goes on as before",
       quiesce_resume},
      {"communicator.life.healthy", 3, kKind, 30, "health is ok while all is well", healthy},
  };
}

}  // namespace ciuic::testing::communicator
