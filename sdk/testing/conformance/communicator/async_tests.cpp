// SPDX-License-Identifier: MIT
//
// Works: many in flight, waited for in any order, by any thread, or not at all; several collectives
// in one submit; and that submit copies whatever it may not keep.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <random>
#include <sys/mman.h>
#include <thread>

#include "communicator_suite.hpp"
#include "flight.hpp"

namespace ciuic::testing::communicator {
namespace {

/// Sums of f32: the one thing that every communicator has.
Case small_sum(const Scene& scene, int number) {
  Case c;
  c.op = CIUIC_OP_ALL_REDUCE;
  c.reduce = CIUIC_REDUCE_SUM;
  c.count = 1 + number * 37 % 1500;
  c.in_place = number % 3 == 0;
  c.shift = number % 2;
  c.salt = mix(scene.test.seed, static_cast<uint64_t>(number));
  return c;
}

void in_flight(const TestContext& test) {
  on_worlds(test, {{1, 2, 3, 4}}, [](Scene& scene) {
    need_sum(scene);
    constexpr int kWorks = 64;
    std::vector<Flight> flights;
    for (int i = 0; i < kWorks; ++i) {
      flights.push_back(take_off(scene, small_sum(scene, i)));
    }
    std::vector<size_t> order(flights.size());
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    std::shuffle(order.begin(), order.end(), std::mt19937_64(scene.test.seed + scene.group.rank()));
    for (const size_t i : order) {
      land(scene, flights[i], std::to_string(kWorks) + " in flight, waited for in any order");
    }
  });
}

/// The first rank's submit must return before the others submit.
void submit_returns(const TestContext& test) {
  on_worlds(test, {{2, 3}}, [](Scene& scene) {
    need_sum(scene, CIUIC_COMM_ASYNC);
    if (scene.group.rank() != 0) {
      scene.rank.await("submit of rank 0 has returned",
                       std::chrono::nanoseconds(scene.patient(5 * kSecond)));
    }
    Flight flight = take_off(scene, small_sum(scene, 20));
    scene.rank.tell("submit of rank 0 has returned");
    land(scene, flight, "a sum that the first rank submits alone");
  });
}

void expect_running(const Scene& scene, const Flight& flight, int64_t timeout_ns) {
  const Outcome out = scene.group.wait(flight.work, timeout_ns);
  require(!out.has_ended, "wait of " + std::to_string(timeout_ns) +
                              " ns before the peers have come: got " + out.describe() +
                              ", expected DEADLINE with the work still running");
  const double limit = 1e-9 * static_cast<double>(timeout_ns + scene.patient(kSecond));
  require(out.seconds < limit, "wait of " + std::to_string(timeout_ns) + " ns took " +
                                   std::to_string(out.seconds) + " s");
}

void short_waits(const TestContext& test) {
  on_worlds(test, {{2}}, [](Scene& scene) {
    need_sum(scene, CIUIC_COMM_ASYNC);
    if (scene.group.rank() != 0) {
      scene.rank.await("rank 0 has looked");
    }
    Flight flight = take_off(scene, small_sum(scene, 20));
    if (scene.group.rank() == 0) {
      require(static_cast<bool>(flight.work),
              "submit returned no work (done) before the peer had come");
      int32_t done = 1;
      scene.group.host().check(flight.work.get()->ops->test(flight.work.get(), &done));
      require(done == 0, "test said done before the peer had come");
      expect_running(scene, flight, 0);
      expect_running(scene, flight, 20 * kMillisecond);
      scene.rank.tell("rank 0 has looked");
    }
    land(scene, flight, "a sum whose wait timed out before");
    if (flight.work) {
      int32_t done = 0;
      scene.group.host().check(flight.work.get()->ops->test(flight.work.get(), &done));
      require(done == 1, "test after a successful wait: got done = 0, expected 1");
      require(scene.group.wait(flight.work, 0).ok(), "a second wait on a work that is done");
    }
  });
}

/// Several threads wait for one work; references are counted.
void many_waiters(const TestContext& test) {
  on_worlds(test, {{2}}, [](Scene& scene) {
    need_sum(scene);
    for (int round = 0; round < 10; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(scene.rank.is_last() ? 10 : 0));
      Flight flight = take_off(scene, small_sum(scene, round));
      std::vector<Outcome> outcomes(4);
      std::vector<std::thread> threads;
      for (Outcome& out : outcomes) {
        threads.emplace_back([&scene, &out, work = flight.work] {
          out = scene.group.wait(work, scene.patient(30 * kSecond));
        });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
      for (const Outcome& out : outcomes) {
        require(out.ok(), "one of four threads that wait for one work: " + out.describe());
      }
      land(scene, flight, "a sum that four threads waited for");
    }
  });
}

/// A released work goes on; on_done says when it has ended.
void release_before_done(const TestContext& test) {
  on_worlds(test, {{2, 3}}, [](Scene& scene) {
    need_sum(scene);
    std::vector<Flight> flights;
    std::vector<std::unique_ptr<CallbackProbe>> ended;
    for (int i = 0; i < 16; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(scene.rank.is_last() ? 2 : 0));
      flights.push_back(take_off(scene, small_sum(scene, i)));
      ended.push_back(std::make_unique<CallbackProbe>());
      ended.back()->watch(scene, flights.back().work);
      flights.back().work = Work();  // released, perhaps long before its end
    }
    for (size_t i = 0; i < flights.size(); ++i) {
      ended[i]->expect_once(scene, "a sum whose work was released at once");
      require(ended[i]->code() == CIUIC_OK,
              "a sum whose work was released at once failed: " + ended[i]->describe());
      land(scene, flights[i], "a sum whose work was released at once");
    }
  });
}

/// All kinds of collectives, as one group.
std::vector<Case> one_of_each(const Scene& scene) {
  std::vector<Case> cases;
  for (const uint32_t op : {CIUIC_OP_ALL_REDUCE, CIUIC_OP_ALL_GATHER, CIUIC_OP_REDUCE_SCATTER,
                            CIUIC_OP_BROADCAST, CIUIC_OP_ALL_TO_ALL, CIUIC_OP_REDUCE,
                            CIUIC_OP_GATHER, CIUIC_OP_SCATTER, CIUIC_OP_ALL_REDUCE}) {
    Case c;
    c.op = op;
    c.reduce = is_reducing(op) ? uint32_t{CIUIC_REDUCE_SUM} : 0;
    c.dtype = cases.empty() || !is_reducing(op) ? kF32 : kI64;
    c.count = 100 + 13 * static_cast<int64_t>(cases.size());
    c.spread = Spread::Gaps;
    c.salt = mix(scene.test.seed, cases.size());
    const bool has_parts = op == CIUIC_OP_ALL_GATHER || op == CIUIC_OP_REDUCE_SCATTER ||
                           op == CIUIC_OP_ALL_TO_ALL || op == CIUIC_OP_GATHER ||
                           op == CIUIC_OP_SCATTER;
    if (!has_parts || !is_offered(scene.group, c)) {
      c.spread = Spread::Even;
    }
    if (is_offered(scene.group, c)) {
      cases.push_back(c);
    }
  }
  return cases;
}

/// Structs for several collectives in pages that can be taken away.
class Pages {
 public:
  explicit Pages(size_t count) : bytes_((count * sizeof(CallStructs) + 4095) / 4096 * 4096) {
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "the test cannot map memory");
    structs_ = static_cast<CallStructs*>(memory);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(structs_, bytes_); }

  CallStructs& at(size_t i) { return *new (structs_ + i) CallStructs(); }
  /// The collectives with everything else between them: what a stride is for.
  [[nodiscard]] ciuic_array array(size_t count) const {
    return {structs_, static_cast<uint32_t>(count), sizeof(CallStructs)};
  }
  void take_away() { mprotect(structs_, bytes_, PROT_NONE); }

 private:
  size_t bytes_;
  CallStructs* structs_ = nullptr;
};

/// One submit of all; the structs are gone when it has returned, while the last rank is late.
void run_as_one(Scene& scene, const std::vector<Case>& cases, bool takes_away) {
  std::vector<KeptBuffers> buffers;
  Pages pages(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    buffers.push_back(make_buffers(cases[i], scene.group.rank(), scene.group.size()));
    buffers.back()->describe_call(pages.at(i), scene.patient(20 * kSecond));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(scene.rank.is_last() ? 30 : 0));
  const ciuic_communicator_vt& vt = scene.group.vt();
  ciuic_work* work = nullptr;
  scene.group.host().check(
      vt.submit(scene.group.self(), pages.array(cases.size()), nullptr, &work));
  if (takes_away) {
    pages.take_away();
    scene.rank.note(
        "work after submit has returned; the structs, shapes and counts given to it "
        "are gone, and whoever reads them faults");
  }
  const Outcome out = scene.group.wait(Work(work), scene.patient(30 * kSecond));
  require(out.ok(), std::to_string(cases.size()) + " collectives in one submit: got " +
                        out.describe() + ", expected success");
  for (const auto& b : buffers) {
    const auto fault = b->find_fault();
    require(!fault, "in a submit of " + std::to_string(cases.size()) + ": " + fault.value_or(""));
    scene.tried();
  }
}

void group_of_collectives(const TestContext& test) {
  on_worlds(test, {{1, 2, 3, 4}}, [](Scene& scene) {
    const std::vector<Case> cases = one_of_each(scene);
    if (!cases.empty()) {
      run_as_one(scene, cases, false);
    }
  });
}

void structs_copied(const TestContext& test) {
  on_worlds(test, {{1, 2, 3}}, [](Scene& scene) {
    for (const Case& c : one_of_each(scene)) {
      run_as_one(scene, {c}, true);
    }
    const std::vector<Case> cases = one_of_each(scene);
    if (!cases.empty()) {
      run_as_one(scene, cases, true);
    }
  });
}

/// A program of many collectives that all ranks run at their own pace.
void own_pace(const TestContext& test) {
  on_worlds(test, {{2, 3, 4}}, [](Scene& scene) {
    const std::vector<Case> kinds = one_of_each(scene);
    if (kinds.empty()) {
      return;
    }
    std::mt19937_64 pace(scene.test.seed * 31 + static_cast<uint64_t>(scene.group.rank()));
    std::vector<Flight> flights;
    for (uint64_t i = 0; i < 150; ++i) {
      Case c = kinds[mix(scene.test.seed, i) % kinds.size()];
      c.count = static_cast<int64_t>(mix(scene.test.seed, i + 1000) % 300);
      c.root = static_cast<int32_t>(mix(i) % static_cast<uint64_t>(scene.world()));
      c.salt = mix(c.salt, i);
      flights.push_back(take_off(scene, c));
      if (pace() % 8 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(pace() % 2000));
      }
      while (flights.size() > 20 || (!flights.empty() && pace() % 4 == 0)) {
        const size_t which = pace() % flights.size();
        land(scene, flights[which], "150 collectives, each rank at its own pace");
        flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    for (Flight& flight : flights) {
      land(scene, flight, "150 collectives, each rank at its own pace");
    }
  });
}

}  // namespace

TestTable async_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_COMMUNICATOR;
  return {
      {"communicator.async.in_flight", 3, kKind, 60,
       "64 works in flight, waited for in any order, are all right", in_flight},
      {"communicator.async.submit_returns", 3, kKind, 60,
       "submit returns before the peers have come, where ASYNC", submit_returns},
      {"communicator.async.short_waits", 3, kKind, 60,
       "test and wait say that a work is still running, and leave it running", short_waits},
      {"communicator.async.many_waiters", 3, kKind, 60, "several threads wait for one work",
       many_waiters},
      {"communicator.async.release_before_done", 3, kKind, 60, "release neither waits nor cancels",
       release_before_done},
      {"communicator.async.group", 3, kKind, 60,
       "all kinds of collectives in one submit complete together", group_of_collectives},
      {"communicator.async.structs_copied", 3, kKind, 60,
       "nothing that was given to submit, but the data, is read after it has returned",
       structs_copied},
      {"communicator.async.own_pace", 3, kKind, 60,
       "150 collectives of all kinds while every rank goes at its own pace", own_pace},
  };
}

}  // namespace ciuic::testing::communicator
