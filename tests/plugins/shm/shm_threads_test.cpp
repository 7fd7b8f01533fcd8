// SPDX-License-Identifier: MIT
//
// shm with ranks as threads over one mapping: what gloo's and shm's ranks are asked as processes, and
// what only shows under ThreadSanitizer or after many tries. tests/threads/run runs it so.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <ciuic/testing/shared_store.hpp>

#include "message_check.h"
#include "move_check.h"
#include "number_check.h"

namespace ciuic::tests {
namespace {

using namespace std::chrono_literals;

/// Runs a rank in each of `world` threads. What one throws is a failure that names it.
void run_threads(int world, const std::function<void(const Communicator&)>& body,
                 std::chrono::nanoseconds timeout = 60s) {
  testing::SharedStore store;
  std::vector<std::thread> threads;
  for (int r = 0; r < world; ++r) {
    threads.emplace_back([&, r] {
      testing::TestHost host;
      testing::SharedKv kv(host.host(), store, "group/");
      host.offer("ciuic.kv", kv.table());
      try {
        const Communicator g(host, r, world, Setup{timeout, "", true});
        body(g);
      } catch (const std::exception& e) {
        ADD_FAILURE() << "rank " << r << " of " << world << ": " << e.what();
      }
      EXPECT_TRUE(host.balanced()) << "rank " << r;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

class ShmThreads : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, ShmThreads, ::testing::Values(2, 3, 4));

TEST_P(ShmThreads, NumbersAreRightAndTheSameEverywhere) {
  std::vector<uint64_t> hashes(static_cast<size_t>(GetParam()));
  run_threads(GetParam(), [&](const Communicator& g) {
    hashes[static_cast<size_t>(g.rank())] = check_numbers(g);
    check_special_values(g);
  });
  for (const uint64_t hash : hashes) {
    EXPECT_EQ(hash, hashes[0]);
  }
}

TEST_P(ShmThreads, PartsArriveWhereTheyBelong) { run_threads(GetParam(), check_moves); }
TEST_P(ShmThreads, MessagesArrive) { run_threads(GetParam(), check_messages); }

/// Rank 0 sends what the others wait for already, so that offers come while receives look for them.
/// Small ones go with their bytes, large ones through the cells; all places are taken again and again.
TEST_P(ShmThreads, MessagesOfOneTagKeepTheirOrder) {
  constexpr int kRounds = 200;
  constexpr int kCount = 40;
  constexpr int kTags = 3;
  run_threads(GetParam(), [](const Communicator& g) {
    std::vector<std::vector<double>> data(kCount);
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Work> works;
      for (int i = 0; i < kCount; ++i) {
        std::vector<double>& x = data[static_cast<size_t>(i)];
        const auto n = static_cast<int64_t>(1 + i * (i % 7 == 0 ? 97 : 1));
        x.assign(static_cast<size_t>(n), g.rank() == 0 ? i : -1);
        const auto tag = static_cast<uint32_t>(i % kTags);
        for (int p = 1; p < g.world() && g.rank() == 0; ++p) {
          works.push_back(g.submit(send(x.data(), kF64, n, p, tag)));
        }
        if (g.rank() > 0) {
          works.push_back(g.submit(receive(x.data(), kF64, n, 0, tag)));
        }
      }
      for (const Work& work : works) {
        work.wait(g.host());
      }
      for (int i = 0; i < kCount; ++i) {
        if (data[static_cast<size_t>(i)].back() != i) {
          throw std::runtime_error("round " + std::to_string(round) + ": message " +
                                   std::to_string(i) + " arrived elsewhere");
        }
      }
    }
  });
}

/// Several threads of a rank wait, ask and look at once, while collectives and messages go on.
TEST_P(ShmThreads, WorksAreWaitedForByManyThreads) {
  run_threads(GetParam(), [](const Communicator& g) {
    const int right = (g.rank() + 1) % g.world();
    const int left = (g.rank() + g.world() - 1) % g.world();
    for (int round = 0; round < 50; ++round) {
      std::vector<float> x(5000 + 3000 * static_cast<size_t>(round % 5), 1);
      const auto n = static_cast<int64_t>(x.size());
      std::vector<float> in(3000);
      const Work sum = g.submit(all_reduce(x.data(), x.data(), kF32, n));
      std::vector<float> out(3000, static_cast<float>(g.rank()));
      std::vector<Call> calls{send(out.data(), kF32, 3000, right),
                              receive(in.data(), kF32, 3000, left)};
      const Work passed = g.submit(calls);
      std::vector<std::thread> waiters;
      for (const Work* work : {&sum, &passed, &sum}) {
        waiters.emplace_back([&g, work] { work->wait(g.host()); });
      }
      for (std::thread& waiter : waiters) {
        waiter.join();
      }
      g.check_health();
      if (x.back() != static_cast<float>(g.world()) || in.back() != static_cast<float>(left)) {
        throw std::runtime_error("a wrong number in round " + std::to_string(round));
      }
    }
  });
}

TEST_P(ShmThreads, GroupsWorkAtTheSameTime) {
  run_threads(GetParam(), [](const Communicator& g) {
    const auto pair = g.split(g.rank() < 2 ? std::vector<int32_t>{1, 0} : std::vector<int32_t>{});
    for (int round = 0; round < 30; ++round) {
      std::vector<double> x(20'000, 1);
      std::vector<double> y = x;
      const Work whole = g.submit(all_reduce(x.data(), x.data(), kF64, 20'000));
      if (pair != nullptr) {
        pair->run(all_reduce(y.data(), y.data(), kF64, 20'000));
      }
      whole.wait(g.host());
      if (x.back() != g.world() || y.back() != (pair != nullptr ? 2 : 1)) {
        throw std::runtime_error("a wrong sum in round " + std::to_string(round));
      }
    }
  });
}

/// An abort while others are in the middle; then everybody gives up his group with works open.
TEST_P(ShmThreads, AbortEndsAllRanks) {
  std::atomic<int> num_failed = 0;
  // They outlive the groups, which may still read them when the first work has failed.
  std::vector<std::vector<float>> tensors(static_cast<size_t>(GetParam()),
                                          std::vector<float>(1 << 18));
  run_threads(GetParam(), [&](const Communicator& g) {
    std::vector<float>& x = tensors[static_cast<size_t>(g.rank())];
    g.run(barrier());
    std::thread other;
    if (g.rank() == 1) {
      other = std::thread([&g] {
        std::this_thread::sleep_for(20ms);
        g.abort(CIUIC_ABORTED);
      });
    }
    try {
      while (true) {
        const Work first = g.submit(all_reduce(x.data(), x.data(), kF32, 1 << 18));
        const Work second = g.submit(all_reduce(x.data(), x.data(), kF32, 1 << 18));
        first.wait(g.host());
        second.wait(g.host());
      }
    } catch (const Error&) {
      ++num_failed;
    }
    if (other.joinable()) {
      other.join();
    }
  });
  EXPECT_EQ(num_failed, GetParam());
}

}  // namespace
}  // namespace ciuic::tests
