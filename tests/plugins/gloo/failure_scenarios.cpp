// SPDX-License-Identifier: MIT
#include "failure_scenarios.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <string_view>

namespace ciuic::tests {
namespace {

constexpr bool kSmallSendsAreBuffered = std::string_view(CIUIC_RANK_PLUGIN) == "plugins/libshm.so";

/// Memory of one operation of a scenario.
struct Pad {
  std::vector<float> in = std::vector<float>(40000, 1);
  std::vector<float> out = std::vector<float>(40000, -1);
};

using MakeCalls = std::function<std::vector<Call>(Pad&)>;

/// The work's error, if it failed.
std::optional<Error> outcome(const Communicator& g, std::vector<Call> calls,
                             std::chrono::nanoseconds timeout) {
  for (Call& call : calls) {
    call.c.timeout_ns = timeout.count();
  }
  try {
    g.submit(calls).wait(g.host());
    return std::nullopt;
  } catch (const Error& e) {
    return Error(e.code(), std::string(e.what()), e.peer());
  }
}

/// `odd`: on the last rank, which asks for something else than the others.
std::map<std::string, MakeCalls> disagreements(const Rank& r) {
  const bool odd = r.rank == r.world - 1;
  const int world = r.world;
  const int last = world - 1;
  const auto reduced = [odd](int64_t n, int64_t odd_n, uint32_t reduce) {
    return [=](Pad& p) {
      return std::vector<Call>{
          all_reduce(p.in.data(), p.out.data(), kF32, odd ? odd_n : n, reduce)};
    };
  };
  const auto moved = [](auto make) { return [=](Pad& p) { return std::vector<Call>{make(p)}; }; };
  return {
      {"all-reduce, small, count", reduced(3, 4, CIUIC_REDUCE_SUM)},
      {"all-reduce, large, count", reduced(30000, 30001, CIUIC_REDUCE_SUM)},
      {"all-reduce, small and large", reduced(3, 30001, CIUIC_REDUCE_SUM)},
      {"all-reduce, reduction",
       reduced(30000, 30000, odd ? uint32_t{CIUIC_REDUCE_MAX} : uint32_t{CIUIC_REDUCE_SUM})},
      {"all-reduce, type", moved([=](Pad& p) {
         return all_reduce(p.in.data(), p.out.data(), odd ? kI32 : kF32, 30000);
       })},
      {"all-reduce and all-gather", moved([=](Pad& p) {
         return odd ? move(CIUIC_OP_ALL_GATHER, p.in.data(), 10, p.out.data(), 10 * world, kF32)
                    : all_reduce(p.in.data(), p.out.data(), kF32, 10);
       })},
      {"broadcast, count", moved([=](Pad& p) {
         return move(CIUIC_OP_BROADCAST, nullptr, 0, p.out.data(), odd ? 11 : 10, kF32);
       })},
      {"broadcast, root", moved([=](Pad& p) {
         return move(CIUIC_OP_BROADCAST, nullptr, 0, p.out.data(), 10, kF32, odd ? 1 : 0);
       })},
      {"all-gather, count", moved([=](Pad& p) {
         const int64_t n = odd ? 11 : 10;
         return move(CIUIC_OP_ALL_GATHER, p.in.data(), n, p.out.data(), n * world, kF32);
       })},
      {"all-to-all, count", moved([=](Pad& p) {
         const int64_t n = (odd ? 11 : 10) * world;
         return move(CIUIC_OP_ALL_TO_ALL, p.in.data(), n, p.out.data(), n, kF32);
       })},
      {"reduce-scatter, count", moved([=](Pad& p) {
         const int64_t n = odd ? 11 : 10;
         Call call = move(CIUIC_OP_REDUCE_SCATTER, p.in.data(), n * world, p.out.data(), n, kF32);
         call.c.reduce = CIUIC_REDUCE_SUM;
         return call;
       })},
      {"message, count",
       [=](Pad& p) {
         return odd ? std::vector<Call>{send(p.in.data(), kF32, 11, 0)}
                    : std::vector<Call>{receive(p.out.data(), kF32, 10, last)};
       }},
      {"message, type",
       [=](Pad& p) {
         return odd ? std::vector<Call>{send(p.in.data(), kI32, 10, 0)}
                    : std::vector<Call>{receive(p.out.data(), kF32, 10, last)};
       }},
      {"message, tag",
       [=](Pad& p) {
         return odd ? std::vector<Call>{send(p.in.data(), kF32, 10, 0, 5)}
                    : std::vector<Call>{receive(p.out.data(), kF32, 10, last, 6)};
       }},
  };
}

/// Operations in which each rank waits for the last one.
std::map<std::string, MakeCalls> waits_for_last(const Rank& r) {
  const int world = r.world;
  const int last = world - 1;
  const auto one = [](auto make) { return [=](Pad& p) { return std::vector<Call>{make(p)}; }; };
  return {
      {"all-to-all", one([=](Pad& p) {
         return move(CIUIC_OP_ALL_TO_ALL, p.in.data(), 10 * world, p.out.data(), 10 * world, kF32);
       })},
      {"all-gather", one([=](Pad& p) {
         return move(CIUIC_OP_ALL_GATHER, p.in.data(), 10000, p.out.data(), 10000 * world, kF32);
       })},
      {"scatter", one([=](Pad& p) {
         return move(CIUIC_OP_SCATTER, nullptr, 0, p.out.data(), 10, kF32, last);
       })},
      {"gather",
       one([=](Pad& p) { return move(CIUIC_OP_GATHER, p.in.data(), 10, nullptr, 0, kF32, last); })},
      {"tree all-reduce", one([=](Pad& p) {
         Call call = all_reduce(p.in.data(), p.out.data(), kF32, 30000);
         call.c.flags = CIUIC_COLLECTIVE_TREE;
         return call;
       })},
      {"receive", one([=](Pad& p) { return receive(p.out.data(), kF32, 10, last); })},
      {"send", one([=](Pad& p) { return send(p.in.data(), kF32, 10000, last); })},
  };
}

}  // namespace

void mismatches(Rank& r) {
  for (const auto& [name, make] : disagreements(r)) {
    const auto g = r.communicator(10s);
    Pad pad;
    g->run(barrier());
    const auto error = outcome(*g, make(pad), 1600ms);
    // In a broadcast two ranks that agree may well be done.
    const bool agrees = name.starts_with("broadcast") && r.rank != 0 && r.rank != r.world - 1;
    // A small message over shared memory is sent when it is copied; who receives it is told.
    const bool has_sent =
        kSmallSendsAreBuffered && name.starts_with("message") && r.rank == r.world - 1;
    require(error.has_value() || agrees || has_sent, name + " fails");
    if (!error.has_value()) {
      r.meet(name);
      continue;
    }
    require(error->code() == CIUIC_DEADLINE || error->code() == CIUIC_INVALID,
            name + " is DEADLINE, not " + error->what());
    r.meet(name);
  }
}

void silent_in_moves(Rank& r) {
  constexpr auto kTimeout = 2s;
  const int last = r.world - 1;
  for (const auto& [name, make] : waits_for_last(r)) {
    const auto g = r.communicator(10s);
    Pad pad;
    g->run(barrier());
    if (r.rank != last) {
      const auto start = Clock::now();
      const auto error = outcome(*g, make(pad), kTimeout);
      const double seconds = seconds_since(start);
      require(error.has_value() && error->code() == CIUIC_DEADLINE, name + " is DEADLINE");
      require(error->peer() == last, name + " names the last rank: " + error->what());
      require(seconds > 1.99 && seconds < 2.2,
              name + " ends in time, not after " + std::to_string(seconds) + " s");
    }
    r.meet(name);
  }
}

void killed_in_moves(Rank& r) {
  const auto g = r.communicator(20s);
  const int last = r.world - 1;
  std::vector<float> in(3 << 18, 1);
  std::vector<float> out(3 << 18);
  const auto n = static_cast<int64_t>(in.size()) / r.world * r.world;
  const auto round = [&] {
    g->run(move(CIUIC_OP_ALL_TO_ALL, in.data(), n, out.data(), n, kF32));
    std::vector<Call> calls;
    for (int p = 0; p < r.world; ++p) {
      calls.push_back(send(in.data() + p * 1000, kF32, 1000, p, 1));
      calls.push_back(receive(out.data() + p * 1000, kF32, 1000, p, 1));
    }
    g->submit(calls).wait(g->host());
  };
  g->run(barrier());
  const auto start = Clock::now();
  while (r.rank == last) {
    round();
    if (seconds_since(start) > 0.3) {
      ::raise(SIGKILL);
    }
  }
  expect_failure([&] {
    while (true) {
      round();
    }
  });
}

void abort_open_receive(Rank& r) {
  const auto g = r.communicator(20s);
  float x = -1;
  g->run(barrier());
  if (r.rank == 0) {
    const Work work = g->submit(receive(&x, kF32, 1, 1));
    std::thread other([&] {
      std::this_thread::sleep_for(200ms);
      g->abort(CIUIC_CANCELLED);
    });
    expect_failure([&] { work.wait(g->host()); });
    other.join();
    require(x == -1, "nothing arrived");
  }
  r.meet("end");
}

}  // namespace ciuic::tests
