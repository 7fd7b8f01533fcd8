// SPDX-License-Identifier: MIT
//
// on_done: exactly once, for success and failure, and never after quiesce or destroy.
#include <chrono>
#include <deque>
#include <thread>

#include "communicator_suite.hpp"
#include "flight.hpp"

namespace ciuic::testing::communicator {
namespace {

/// Enough for a second call, or a late one, to come.
constexpr auto kSettle = std::chrono::milliseconds(150);

struct Watched {
  std::vector<Flight> flights;
  std::deque<CallbackProbe> ended;
};

void take_off_watched(Scene& scene, Watched& all, int count) {
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(scene.rank.is_last() ? 300 : 0));
    all.flights.push_back(take_off(scene, sum_of(scene, 1 + i * 11)));
    all.ended.emplace_back().watch(scene, all.flights.back().work);
  }
}

void expect_each_once(const Scene& scene, const Watched& all, const std::string& what) {
  for (const CallbackProbe& ended : all.ended) {
    ended.expect_once(scene, what);
  }
  std::this_thread::sleep_for(kSettle);
  for (const CallbackProbe& ended : all.ended) {
    ended.expect_once(scene, what);
    require(ended.code() == CIUIC_OK, what + ": the callback of a work that succeeded got status " +
                                          code_name(ended.code()) + ", expected NULL");
  }
}

void once(const TestContext& test) {
  on_worlds(test, {{1, 2, 3}}, [](Scene& scene) {
    need_sum(scene);
    Watched all;
    take_off_watched(scene, all, 64);
    for (const Flight& flight : all.flights) {
      land(scene, flight, "64 works with callbacks");
    }
    expect_each_once(scene, all, "64 works with callbacks");
  });
}

/// Callbacks of a work that is done already, and several on one work.
void any_time(const TestContext& test) {
  on_worlds(test, {{1, 2}}, [](Scene& scene) {
    need_sum(scene);
    Watched all;
    take_off_watched(scene, all, 1);
    const Flight& flight = all.flights.front();
    all.ended.emplace_back().watch(scene, flight.work);
    land(scene, flight, "a work with three callbacks");
    all.ended.emplace_back().watch(scene, flight.work);
    expect_each_once(scene, all, "a work with two callbacks before its end and one after");
  });
}

void expect_silence(const Watched& all, const std::string& after) {
  std::this_thread::sleep_for(2 * kSettle);
  for (const CallbackProbe& ended : all.ended) {
    require(ended.late_calls() == 0,
            "a callback came after " + after + " had returned; expected none from then on");
  }
}

void none_after_destroy(const TestContext& test) {
  on_worlds(test, {{1, 2}}, [](Scene& scene) {
    need_sum(scene);
    Watched all;
    {
      Group group = Group::create(scene.test, scene.rank);
      Scene inner(scene.test, scene.rank, group);
      take_off_watched(inner, all, 16);
      for (Flight& flight : all.flights) {
        land(inner, flight, "a work before destroy");
        flight.work = Work();
      }
      group.destroy();
    }
    for (CallbackProbe& ended : all.ended) {
      require(ended.calls() == 1, "destroy has returned and a callback was " + ended.describe() +
                                      "; expected exactly once before that");
      ended.close();
    }
    expect_silence(all, "destroy");
    scene.tried();
  });
}

void none_after_quiesce(const TestContext& test) {
  on_worlds(test, {{1, 2}}, [](Scene& scene) {
    need_sum(scene);
    if (!CIUIC_CAN(&scene.group.descriptor(), quiesce)) {
      throw NotOffered("the plugin has no quiesce");
    }
    Watched all;
    take_off_watched(scene, all, 16);
    scene.rank.note("quiesce");
    scene.group.quiesce(scene.patient(20 * kSecond));
    for (size_t i = 0; i < all.ended.size(); ++i) {
      require(all.ended[i].calls() == 1, "quiesce has returned and a callback was " +
                                             all.ended[i].describe() +
                                             "; expected exactly once before that");
      all.ended[i].close();
      require(scene.group.wait(all.flights[i].work, 0).ok(),
              "quiesce has returned and a work has not ended");
      all.flights[i].work = Work();
    }
    expect_silence(all, "quiesce");
    scene.tried();
  });
}

}  // namespace

TestTable callback_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_COMMUNICATOR;
  return {
      {"communicator.callbacks.once", 3, kKind, 60, "on_done calls back exactly once", once},
      {"communicator.callbacks.any_time", 3, kKind, 30,
       "several callbacks on one work, before its end and after, come once each", any_time},
      {"communicator.callbacks.none_after_destroy", 3, kKind, 30,
       "no callback comes after destroy has returned, and none is lost", none_after_destroy},
      {"communicator.callbacks.none_after_quiesce", 3, kKind, 30,
       "quiesce ends works and callbacks; none comes later", none_after_quiesce},
  };
}

}  // namespace ciuic::testing::communicator
