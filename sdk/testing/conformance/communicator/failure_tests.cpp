// SPDX-License-Identifier: MIT
//
// When a rank is silent, dead, or asks for something else: every wait ends, in time, with an error
// that says who is to blame, and wrong numbers are never a success.
#include <chrono>
#include <csignal>
#include <thread>

#include "communicator_suite.hpp"
#include "flight.hpp"

namespace ciuic::testing::communicator {
namespace {

/// A busy machine schedules late.
constexpr int64_t kSlack = 1'500 * kMillisecond;

int64_t latest_end(const Scene& scene, int64_t timeout_ns) {
  return timeout_ns + timeout_ns / 10 + scene.patient(kSlack);
}

/// A failed work says so each time it is asked, with a status of its own.
void expect_repeated_status(const Scene& scene, const Work& work) {
  for (int i = 0; i < 3 && work; ++i) {
    int32_t done = 0;
    ciuic_status* status = work.get()->ops->test(work.get(), &done);
    require(status != nullptr && done == 1,
            "test of a failed work: got " +
                std::string(status == nullptr ? "no status" : "a status") + " and done = " +
                std::to_string(done) + "; expected a new status each time, and done = 1");
    scene.group.host().table()->status_free(scene.group.host().table()->ctx, status);
  }
}

void expect_late_error(const Scene& scene, const Outcome& out, int64_t timeout_ns,
                       const std::string& what) {
  const double seconds = 1e-9 * static_cast<double>(timeout_ns);
  require(out.has_ended, what + " has not ended " + std::to_string(out.seconds) +
                             " s after its submit, with a timeout of " + std::to_string(seconds) +
                             " s");
  require(out.code() == CIUIC_DEADLINE || (out.code() == CIUIC_UNAVAILABLE && out.peer() >= 0),
          what + ": got " + out.describe() +
              ", expected DEADLINE, or UNAVAILABLE with the peer's rank");
  require(out.seconds > seconds / 2, what + " failed after " + std::to_string(out.seconds) +
                                         " s, long before its timeout of " +
                                         std::to_string(seconds) + " s");
  require(out.seconds < 1e-9 * static_cast<double>(latest_end(scene, timeout_ns)),
          what + " failed after " + std::to_string(out.seconds) + " s; expected the timeout of " +
              std::to_string(seconds) + " s and 10 %");
}

/// The last rank does not submit; the others' callbacks and works end at the deadline.
void meet_silence(Scene& scene, const Case& c) {
  const int64_t timeout = 700 * kMillisecond;
  const std::string what = describe(c, scene.world()) + ", whose last rank is silent";
  if (scene.rank.is_last()) {
    scene.rank.meet("the others have failed");
  } else {
    const auto begin = std::chrono::steady_clock::now();
    Outcome out;
    CallbackProbe ended;
    Flight flight;
    try {
      flight = take_off(scene, c, timeout);
      ended.watch(scene, flight.work);
      out = scene.group.wait(flight.work, latest_end(scene, timeout));
    } catch (const Error& e) {
      out.error.emplace(e);
    }
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    expect_late_error(scene, out, timeout, what);
    if (flight.work) {
      expect_repeated_status(scene, flight.work);
      ended.expect_once(scene, what);
      require(ended.code() != CIUIC_OK, what + ": the callback got NULL for a failure");
    }
    scene.rank.meet("the others have failed");
  }
  scene.tried();
  const auto begin = std::chrono::steady_clock::now();
  scene.rank.note("destroy after a failure");
  scene.group.destroy();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  require(seconds < 10 * scene.test.patience,
          "destroy after " + what + " took " + std::to_string(seconds) + " s");
}

void silent_rank(const TestContext& test) {
  on_worlds(test, {{2, 3}}, [](Scene& scene) {
    need_sum(scene);
    meet_silence(scene, sum_of(scene, 1000));
  });
}

void silent_root(const TestContext& test) {
  on_worlds(test, {{2, 3}}, [](Scene& scene) {
    Case c = sum_of(scene, 1000);
    c.op = CIUIC_OP_BROADCAST;
    c.reduce = 0;
    c.root = scene.world() - 1;
    if (!is_offered(scene.group, c)) {
      throw NotOffered("capabilities deny BROADCAST");
    }
    meet_silence(scene, c);
  });
}

/// The survivors' rounds end with an error that names the dead rank.
void outlive(const Scene& scene, int victim, const std::string& where) {
  Scene inner = scene.inside(scene.group);
  for (int round = 0; round < 1'000'000; ++round) {
    if (scene.rank.rank() == victim && round == 5) {
      ::raise(SIGKILL);
    }
    Outcome out;
    try {
      const Flight flight = take_off(inner, sum_of(scene, 5000), 3 * kSecond);
      out = scene.group.wait(flight.work, latest_end(scene, 3 * kSecond));
    } catch (const Error& e) {
      out.error.emplace(e);
    }
    require(out.has_ended, where + ": a sum with a killed rank has not ended: " + out.describe());
    if (out.ok()) {
      continue;
    }
    require(out.code() == CIUIC_UNAVAILABLE || out.code() == CIUIC_DEADLINE,
            where + ": got " + out.describe() + ", expected UNAVAILABLE or DEADLINE");
    require(out.peer() == victim, where + ": rank " + std::to_string(scene.rank.rank()) +
                                      " blames peer " + std::to_string(out.peer()) +
                                      ", expected the global rank that was killed, " +
                                      std::to_string(victim) + " (" + out.describe() + ")");
    const std::optional<Error> health = scene.group.health();
    require(health.has_value(), where + ": health says ok after a rank has died");
    return;
  }
}

void killed(const TestContext& test, std::vector<int> worlds, int victim) {
  on_worlds(test, {std::move(worlds), 60 * kSecond, {victim}}, [=](Scene& scene) {
    need_sum(scene);
    const int who = victim < 0 ? scene.world() + victim : victim;
    scene.tried();
    outlive(scene, who,
            "rank " + std::to_string(who) + " of " + std::to_string(scene.world()) + " was killed");
  });
}
void killed_rank(const TestContext& test) { killed(test, {2, 4}, -1); }
void killed_first(const TestContext& test) { killed(test, {3}, 0); }

/// In a part of the group, errors name ranks by their number in the whole.
void killed_in_split(const TestContext& test) {
  on_worlds(test, {{4}, 60 * kSecond, {-1}}, [](Scene& scene) {
    need_sum(scene);
    const bool is_odd = scene.rank.rank() % 2 == 1;
    std::optional<Group> part =
        scene.group.split(is_odd ? std::vector<int32_t>{3, 1} : std::vector<int32_t>{0, 2});
    scene.tried();
    if (is_odd) {
      Scene inner = scene.inside(*part);
      outlive(inner, 3, "rank 0 of a part, global rank 3, was killed");
    }
  });
}

/// The last rank asks for something else: nobody may be told that all went well.
void expect_mismatch_seen(Scene& scene, const Case& mine, const std::string& what) {
  const int64_t timeout = 1'200 * kMillisecond;
  Outcome out;
  Flight flight;
  try {
    flight = take_off(scene, mine, timeout);
    out = scene.group.wait(flight.work, latest_end(scene, timeout));
  } catch (const Error& e) {
    out.error.emplace(e);
  }
  require(!out.ok(), what + ": rank " + std::to_string(scene.group.rank()) +
                         " got success; expected INVALID or DEADLINE on every rank");
  require(out.has_ended, what + ": not ended: " + out.describe());
  require(out.code() == CIUIC_INVALID || out.code() == CIUIC_DEADLINE ||
              out.code() == CIUIC_UNAVAILABLE,  // because of a peer that has failed first
          what + ": got " + out.describe() + ", expected INVALID or DEADLINE");
  const auto stray = flight.buffers == nullptr ? std::nullopt : flight.buffers->find_stray_write();
  require(!stray, what + ": " + stray.value_or(""));
  scene.tried();
  scene.rank.meet("all have failed");
}

void count_mismatch(const TestContext& test) {
  for (const int64_t other : {1001, 600}) {
    on_worlds(test, {{2, 3}}, [&](Scene& scene) {
      need_sum(scene);
      const Case c = sum_of(scene, scene.rank.is_last() ? other : 1000);
      expect_mismatch_seen(
          scene, c, "a sum of 1000 elements, of " + std::to_string(other) + " on the last rank");
    });
  }
}

void dtype_mismatch(const TestContext& test) {
  on_worlds(test, {{2, 3}}, [](Scene& scene) {
    need_sum(scene);
    Case c = sum_of(scene, 1000);
    const bool has_other = scene.group.can(c.op, c.reduce, kI32);
    c.dtype = scene.rank.is_last() ? has_other ? kI32 : kF64 : kF32;
    if (!scene.group.can(c.op, c.reduce, has_other ? kI32 : kF64)) {
      throw NotOffered("capabilities deny sums of any other type than f32");
    }
    expect_mismatch_seen(
        scene, c, "a sum of f32, of " + dtype_name(has_other ? kI32 : kF64) + " on the last rank");
  });
}

void gather_mismatch(const TestContext& test) {
  on_worlds(test, {{2, 3}}, [](Scene& scene) {
    Case c = sum_of(scene, scene.rank.is_last() ? 300 : 200);
    c.op = CIUIC_OP_ALL_GATHER;
    c.reduce = 0;
    if (!is_offered(scene.group, c)) {
      throw NotOffered("capabilities deny ALL_GATHER");
    }
    expect_mismatch_seen(scene, c, "a gather of 200 elements, of 300 on the last rank");
  });
}

}  // namespace

TestTable failure_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_COMMUNICATOR;
  return {
      {"communicator.failure.silent_rank", 3, kKind, 60,
       "a rank that does not come ends the others' work at its deadline; destroy still returns",
       silent_rank},
      {"communicator.failure.silent_root", 3, kKind, 60, "so does a root that does not send",
       silent_root},
      {"communicator.failure.killed_rank", 3, kKind, 60,
       "every survivor is told who was killed; health says so too", killed_rank},
      {"communicator.failure.killed_first", 3, kKind, 60, "also when it was rank 0", killed_first},
      {"communicator.failure.killed_in_split", 3, kKind, 60,
       "in a part of the group, errors name global ranks", killed_in_split},
      {"communicator.failure.count_mismatch", 3, kKind, 60,
       "ranks that reduce different counts are told so, or time out; none gets success",
       count_mismatch},
      {"communicator.failure.dtype_mismatch", 3, kKind, 60,
       "ranks that reduce different types are told so, or time out; none gets success",
       dtype_mismatch},
      {"communicator.failure.gather_mismatch", 3, kKind, 60,
       "ranks that gather different counts are told so, or time out; none gets success",
       gather_mismatch},
  };
}

}  // namespace ciuic::testing::communicator
