// SPDX-License-Identifier: MIT
//
// abort: pending and later works end within a second with its code, from any thread, and a new
// generation starts afresh.
#include <chrono>
#include <thread>

#include "communicator_suite.hpp"
#include "flight.hpp"

namespace ciuic::testing::communicator {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct AbortedRun {
  Outcome out;
  bool had_work = false;  // else submit itself was unblocked
  double seconds_after_abort = 0;
};

/// A sum that no peer joins, aborted by another thread after 100 ms. A submit that blocks is
/// unblocked too.
AbortedRun run_and_abort(Scene& scene, int32_t code, CallbackProbe& ended) {
  std::atomic<Clock::rep> aborted{0};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    aborted = Clock::now().time_since_epoch().count();
    scene.group.abort(code);
  });
  AbortedRun run;
  try {
    const Flight flight = take_off(scene, sum_of(scene, 4000), scene.patient(20 * kSecond));
    ended.watch(scene, flight.work);
    run.had_work = true;
    run.out = scene.group.wait(flight.work, scene.patient(5 * kSecond));
  } catch (const Error& e) {
    run.out.error.emplace(e);
  }
  const auto end = Clock::now();
  other.join();
  run.seconds_after_abort =
      std::chrono::duration<double>(end.time_since_epoch() - Clock::duration(aborted.load()))
          .count();
  return run;
}

void unblocks(const TestContext& test) {
  for (const int32_t code : {CIUIC_ABORTED, CIUIC_CANCELLED}) {
    on_worlds(test, {{2, 3}}, [=](Scene& scene) {
      need_sum(scene);
      scene.tried();
      if (scene.group.rank() != 0) {
        scene.rank.await("rank 0 was aborted");
        return;
      }
      CallbackProbe ended;
      const AbortedRun run = run_and_abort(scene, code, ended);
      const std::string what = std::string("abort with ") + code_name(code) +
                               " from another thread while a sum waits for its peers";
      require(!run.out.ok() && run.out.has_ended, what + ": got " + run.out.describe());
      require(run.out.code() == code, what + ": the sum ended with " + run.out.describe() +
                                          ", expected the code given to abort");
      require(run.seconds_after_abort < 1 + scene.test.patience,
              what + ": the sum ended " + std::to_string(run.seconds_after_abort) +
                  " s after it, expected at most 1 s");
      if (run.had_work) {
        ended.expect_once(scene, what);
      }
      const auto begin = Clock::now();
      Flight flight;
      Outcome next;
      try {
        flight = take_off(scene, sum_of(scene, 10));
        next = scene.group.wait(flight.work, scene.patient(15 * kSecond));
      } catch (const Error& e) {
        next.error.emplace(e);
      }
      require(
          next.code() == code && next.has_ended && seconds_since(begin) < 1 + scene.test.patience,
          what + ": a later sum: got " + next.describe() + ", expected " + code_name(code) +
              " at once");
      require(scene.group.health().has_value(), what + ": health says ok afterwards");
      scene.rank.tell("rank 0 was aborted");
    });
  }
}

/// Rank 0 alone aborts; the others' works, which wait for it, must end at their deadline at last.
void peers_end(const TestContext& test) {
  on_worlds(test, {{2, 3}}, [](Scene& scene) {
    need_sum(scene);
    scene.tried();
    if (scene.group.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      scene.group.abort(CIUIC_ABORTED);
    } else {
      const auto begin = Clock::now();
      Outcome out;
      try {
        const Flight flight = take_off(scene, sum_of(scene, 4000), 2 * kSecond);
        out = scene.group.wait(flight.work, scene.patient(6 * kSecond));
      } catch (const Error& e) {
        out.error.emplace(e);
      }
      require(out.has_ended && !out.ok(), "rank 0 has aborted; a sum that waits for it: got " +
                                              out.describe() + ", expected an error");
      require(seconds_since(begin) < 2.2 + 1.5 * scene.test.patience,
              "rank 0 has aborted; a sum that waits for it ended after its deadline: " +
                  out.describe());
    }
    scene.rank.meet("all have ended");
  });
}

void new_generation(const TestContext& test) {
  on_worlds(test, {{1, 2, 3}}, [](Scene& scene) {
    need_sum(scene);
    scene.group.abort(CIUIC_ABORTED);
    scene.rank.meet("all are aborted");
    scene.group.destroy();
    for (uint64_t generation = 1; generation <= 3; ++generation) {
      scene.rank.start_generation(generation);
      scene.rank.note("create in generation " + std::to_string(generation));
      Group group = Group::create(scene.test, scene.rank, generation);
      Scene inner(scene.test, scene.rank, group);
      land(inner, take_off(inner, sum_of(scene, 700)), "a sum in a new generation after an abort");
      scene.rank.meet("generation " + std::to_string(generation));
      group.abort(CIUIC_ABORTED);
    }
    scene.tried();
  });
}

/// destroy while a work waits for a peer that never comes.
void destroy_pending(const TestContext& test) {
  on_worlds(test, {{2}}, [](Scene& scene) {
    need_sum(scene, CIUIC_COMM_ASYNC);
    scene.tried();
    if (scene.group.rank() != 0) {
      scene.rank.await("rank 0 is destroyed");
      return;
    }
    CallbackProbe ended;
    Flight flight = take_off(scene, sum_of(scene, 4000), scene.patient(20 * kSecond));
    ended.watch(scene, flight.work);
    flight.work = Work();
    scene.rank.note("destroy with a work under way");
    const auto begin = Clock::now();
    scene.group.abort(CIUIC_CANCELLED);
    scene.group.destroy();
    require(seconds_since(begin) < 5 * scene.test.patience,
            "abort and destroy with a work under way took " + std::to_string(seconds_since(begin)) +
                " s; expected at most 1 s for the work to end");
    require(ended.calls() == 1 && ended.code() != CIUIC_OK,
            "destroy has returned; the callback of the work that was under way was " +
                ended.describe() + "; expected once, with an error");
    ended.close();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    require(ended.late_calls() == 0, "a callback came after destroy had returned");
    scene.rank.tell("rank 0 is destroyed");
  });
}

}  // namespace

TestTable abort_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_COMMUNICATOR;
  return {
      {"communicator.abort.unblocks", 3, kKind, 60,
       "abort from another thread ends works within 1 s with its code, later ones at once",
       unblocks},
      {"communicator.abort.peers_end", 3, kKind, 60,
       "works of ranks that were not aborted end at their deadline", peers_end},
      {"communicator.abort.new_generation", 3, kKind, 60,
       "after abort and destroy a new generation works", new_generation},
      {"communicator.abort.destroy_pending", 3, kKind, 60,
       "destroy after abort returns, its callbacks called, with a work still under way",
       destroy_pending},
  };
}

}  // namespace ciuic::testing::communicator
