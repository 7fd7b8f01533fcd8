// SPDX-License-Identifier: MIT
//
// One rank of a test of a communicator, gloo or shm: gloo_rank SCENARIO RANK WORLD ADDRESS. Prints "key=value" lines; exits with 0
// when what it can see itself is right.
#include <atomic>
#include <csignal>
#include <functional>
#include <iostream>
#include <map>
#include <thread>

#include <c10/util/Logging.h>

#include "failure_scenarios.h"
#include "message_check.h"
#include "move_check.h"
#include "number_check.h"
#include "rank.h"

namespace ciuic::tests {
namespace {

void numbers(Rank& r) {
  const auto g = r.communicator();
  std::cout << "hash=" << check_numbers(*g) << std::endl;
  check_special_values(*g);
}

void in_flight(Rank& r) {
  const auto g = r.communicator();
  constexpr int64_t kCount = 64;
  std::vector<std::vector<float>> data;
  for (int64_t i = 0; i < kCount; ++i) {
    data.emplace_back(static_cast<size_t>(1 + i * 331), static_cast<float>(r.rank + i));
  }
  std::vector<Work> works;
  std::atomic<int> called = 0;
  int expected = 0;  // a work that is not there has ended
  for (auto& x : data) {
    works.push_back(
        g->submit(all_reduce(x.data(), x.data(), kF32, static_cast<int64_t>(x.size()))));
    const auto callback = [](void* context, const ciuic_status* status) {
      *static_cast<std::atomic<int>*>(context) += status == nullptr ? 1 : 1000;
    };
    if (works.back()) {
      ++expected;
      works.back().get()->ops->on_done(works.back().get(), callback, &called);
    }
  }
  for (const Work& work : works) {
    work.wait(g->host());
  }
  for (int64_t i = 0; i < kCount; ++i) {
    const float want = static_cast<float>(r.world * i + r.world * (r.world - 1) / 2);
    require(data[static_cast<size_t>(i)].back() == want, "each sum is right");
  }
  // wait returns before the callbacks have been called
  for (int i = 0; i < 1000 && called < expected; ++i) {
    std::this_thread::sleep_for(1ms);
  }
  require(called == expected, "each callback came once");

  std::vector<Call> group;
  for (auto& x : data) {
    group.push_back(
        all_reduce(x.data(), x.data(), kF32, static_cast<int64_t>(x.size()), CIUIC_REDUCE_AVG));
  }
  group.push_back(barrier());
  g->submit(group).wait(g->host());
  require(data[1].back() == static_cast<float>(r.world + r.world * (r.world - 1) / 2),
          "a group completes as one");
}

/// The last rank does not take part.
void silent(Rank& r) {
  const auto g = r.communicator(2s);
  float x[3] = {1, 2, 3};
  g->run(barrier());
  if (r.rank == r.world - 1) {
    r.meet("end");
    return;
  }
  const Work work = g->submit(all_reduce(x, x, kF32, 3));
  try {
    work.wait(g->host(), 1'000'000);
    throw std::runtime_error("it was done at once");
  } catch (const Error& e) {
    require(e.code() == CIUIC_DEADLINE, "a wait that is too short leaves the work running");
  }
  expect_failure([&] { work.wait(g->host()); });
  const auto start = Clock::now();
  try {
    (void)g->submit(all_reduce(x, x, kF32, 3));
    throw std::runtime_error("a broken group took an operation");
  } catch (const Error&) {
    require(seconds_since(start) < 0.05, "a broken group fails at once");
  }
  r.meet("end");
}

/// A request's own deadline, on a big operation.
void short_request(Rank& r) {
  const auto g = r.communicator(30s);
  std::vector<float> x(1 << 20);
  g->run(barrier());
  if (r.rank == 0) {
    Call call = all_reduce(x.data(), x.data(), kF32, 1 << 20);
    call.c.timeout_ns = 500'000'000;
    call.c.sequence = 12;
    call.c.label = to_str("gradients layer 3");
    expect_failure([&] { g->run(std::move(call)); });
  }
  r.meet("end");
}

void stopped(Rank& r, int victim) {
  const auto g = r.communicator(2s);
  float x[3] = {1, 2, 3};
  g->run(barrier());
  if (r.rank == victim) {
    std::cout << "stopping=1" << std::endl;
    ::raise(SIGSTOP);  // the test kills it
    return;
  }
  expect_failure([&] { g->run(all_reduce(x, x, kF32, 3)); });
}

void killed(Rank& r, int victim) {
  const auto g = r.communicator(20s);
  std::vector<float> x(1 << 20);
  g->run(barrier());
  if (r.rank == victim) {
    std::this_thread::sleep_for(100ms);
    ::raise(SIGKILL);
  }
  expect_failure([&] {
    while (true) {
      g->run(all_reduce(x.data(), x.data(), kF32, 1 << 20));
    }
  });
}

void abort_group(Rank& r) {
  const auto g = r.communicator(20s);
  std::vector<float> x(1 << 20);
  std::vector<float> y(1 << 20);
  g->run(barrier());
  if (r.rank == 1) {  // comes late, and hears of it
    require(r.rendezvous->get("aborted", 20s).has_value(), "rank 0 aborts");
    expect_failure([&] { g->run(all_reduce(x.data(), x.data(), kF32, 1 << 20)); });
  } else if (r.rank == 0) {
    const Work first = g->submit(all_reduce(x.data(), x.data(), kF32, 1 << 20));
    const Work second = g->submit(all_reduce(y.data(), y.data(), kF32, 1 << 20));
    Clock::time_point aborted;
    std::thread other([&] {
      std::this_thread::sleep_for(200ms);
      aborted = Clock::now();
      g->abort(CIUIC_ABORTED);
    });
    expect_failure([&] { first.wait(g->host()); });
    expect_failure([&] { second.wait(g->host()); });
    other.join();
    std::cout << "after_abort=" << seconds_since(aborted) << std::endl;
    if (r.world == 2) {
      r.rendezvous->set("aborted", "yes");
    }
    expect_failure([&] { (void)g->submit(all_reduce(x.data(), x.data(), kF32, 8)); });
    expect_failure([&] { g->check_health(); });
  } else {
    expect_failure([&] {
      const Work first = g->submit(all_reduce(x.data(), x.data(), kF32, 1 << 20));
      const Work second = g->submit(all_reduce(y.data(), y.data(), kF32, 1 << 20));
      first.wait(g->host());
    });
    r.rendezvous->set("aborted",
                      "yes");  // rank 2 waited for rank 1, and heard of rank 0 all the same
  }
  r.meet("end");
}

void split(Rank& r) {
  const auto g = r.communicator();
  const std::vector<int32_t> mine =
      r.rank % 2 == 0 ? std::vector<int32_t>{2, 0} : std::vector<int32_t>{1, 3};
  const auto pair = g->split(mine);
  require(pair->rank() == (r.rank == 0 || r.rank == 3 ? 1 : 0), "ranks follow the given order");
  double x[2] = {1.0 + r.rank, 10.0 * r.rank};
  pair->run(all_reduce(x, x, kF64, 2));
  require(x[0] == (r.rank % 2 == 0 ? 4 : 6) && x[1] == (r.rank % 2 == 0 ? 20 : 40),
          "a subgroup sums its own ranks");
  double y = 1;
  g->run(all_reduce(&y, &y, kF64, 1));
  require(y == 4, "the parent still works");

  const auto some = g->split(r.rank == 3 ? std::vector<int32_t>{} : std::vector<int32_t>{0, 1, 2});
  require((some == nullptr) == (r.rank == 3), "count 0 gives no group");
  if (some) {
    double z = 1;
    some->run(all_reduce(&z, &z, kF64, 1));
    require(z == 3, "three of four");
  }
  const auto alone = g->split({r.rank});
  double w = 7;
  alone->run(all_reduce(&w, &w, kF64, 1));
  require(w == 7, "a group of one");
  const auto grandchild = pair->split({0, 1});
  double v = r.rank;
  grandchild->run(all_reduce(&v, &v, kF64, 1));
  require(v == (r.rank % 2 == 0 ? 2 : 4), "a split of a split");

  for (const std::vector<int32_t>& bad :
       {std::vector<int32_t>{r.rank, r.rank}, {r.rank, 9}, {(r.rank + 1) % 4}}) {
    try {
      (void)g->split(bad);
      throw std::runtime_error("a bad split was taken");
    } catch (const Error& e) {
      require(e.code() == CIUIC_INVALID, "a bad split is INVALID");
    }
  }
  r.meet("end");  // rank 0 has the store, which others' splits still ask
}

/// Overlapping subgroups and their parent, at the same time.
void concurrent_groups(Rank& r) {
  const auto g = r.communicator();
  const auto pair = g->split({r.rank / 2 * 2, r.rank / 2 * 2 + 1});
  const auto cross = g->split({r.rank % 2, r.rank % 2 + 2});
  for (int i = 0; i < 20; ++i) {
    std::vector<double> a(5000, r.rank);
    std::vector<double> b = a;
    std::vector<double> c = a;
    double d = -1;
    const Work first = g->submit(all_reduce(a.data(), a.data(), kF64, 5000));
    const Work second = pair->submit(all_reduce(b.data(), b.data(), kF64, 5000));
    const Work third = cross->submit(all_reduce(c.data(), c.data(), kF64, 5000));
    double own = r.rank;
    std::vector<Call> calls{receive(&d, kF64, 1, 1 - pair->rank()),
                            send(&own, kF64, 1, 1 - pair->rank())};
    pair->submit(calls).wait(pair->host());
    third.wait(g->host());
    second.wait(g->host());
    first.wait(g->host());
    require(a[4999] == 6, "the parent's sum");
    require(b[4999] == (r.rank < 2 ? 1 : 5), "a pair's sum");
    require(c[4999] == (r.rank % 2 == 0 ? 2 : 4), "the other pair's sum");
    require(d == (r.rank ^ 1), "a message in a subgroup, whose ranks count from 0");
  }
}

void capabilities(Rank& r) {
  const auto g = r.communicator();
  int refused = 0;
  for (uint32_t op = 0; op <= 12; ++op) {
    for (uint32_t reduce = 0; reduce <= 8; ++reduce) {
      for (const ciuic_dtype dtype :
           {kF32, kF64, kF16, kBF16, kI32, kI64, kU8, ciuic_dtype{CIUIC_DTYPE_INT, 4, 1},
            ciuic_dtype{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1}}) {
        if (g->capabilities(op, reduce, dtype) != 0) {
          continue;
        }
        char memory[64] = {};
        Call call = all_reduce(memory, memory, dtype, 4);
        call.c.op = op;
        call.c.reduce = reduce;
        try {
          (void)g->submit(std::move(call));
          throw std::runtime_error("op " + std::to_string(op) + " reduce " +
                                   std::to_string(reduce) + " was taken");
        } catch (const Error& e) {
          require(e.code() == CIUIC_UNIMPLEMENTED,
                  "what is denied is UNIMPLEMENTED: " + std::string(e.what()));
          ++refused;
        }
      }
    }
  }
  require(refused > 100, "much is refused");
  require(g->capabilities(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_AVG, kI64) == 0,
          "integer averages are denied");
  require(g->capabilities(CIUIC_OP_REDUCE, CIUIC_REDUCE_OR, kF32) == 0,
          "bitwise reductions of floats are denied");
  float x[4] = {};
  const auto refuses = [&](int32_t code, Call call) {
    try {
      (void)g->submit(std::move(call));
    } catch (const Error& e) {
      require(e.code() == code, e.what());
      return;
    }
    throw std::runtime_error("a bad request was taken");
  };
  const int64_t counts[4] = {1, 3, 0, 0};
  Call uneven = all_reduce(x, x, kF32, 4);
  uneven.c.in_counts = counts;
  refuses(CIUIC_INVALID, uneven);
  Call scaled = all_reduce(x, x, kF32, 4);
  scaled.c.factor = 0.5;
  refuses(CIUIC_UNIMPLEMENTED, scaled);
  Call sizes{Tensor(x, kF32, {4}), Tensor(x, kF32, {3}), {}};
  sizes.c.op = CIUIC_OP_ALL_REDUCE;
  sizes.c.reduce = CIUIC_REDUCE_SUM;
  refuses(CIUIC_INVALID, sizes);
  Call types{Tensor(x, kI32, {4}), Tensor(x, kF32, {4}), {}};
  types.c = sizes.c;
  refuses(CIUIC_INVALID, types);
  Call root = all_reduce(x, x, kF32, 4);
  root.c.op = CIUIC_OP_BROADCAST;
  root.c.peer = r.world;
  refuses(CIUIC_INVALID, root);
  // and nothing of this has disturbed the group
  float y = 1;
  g->run(all_reduce(&y, &y, kF32, 1));
  require(y == static_cast<float>(r.world), "the group still works");
}

void missing_member(Rank& r) {
  if (r.rank == r.world - 1) {
    r.meet("end");
    return;
  }
  expect_failure([&] { (void)r.communicator(1s); });
  r.meet("end");
}

/// No group can be made, and all ranks hear why.
void refused(Rank& r) {
  expect_failure([&] { (void)r.communicator(10s); });
  r.meet("end");
}

/// Ranks that believe to be on machines of their own; and interfaces that the user names.
void addresses(Rank& r) {
  float x = 1;
  for (const Setup& setup :
       {Setup{10s, "", false}, Setup{10s, "lo", true}, Setup{10s, "127.0.0.1", true}}) {
    try {
      const Communicator g(r.host, r.rank, r.world, setup);
      g.run(all_reduce(&x, &x, kF32, 1));
    } catch (const Error& e) {  // this machine may have nothing but loopback
      require(!setup.one_machine && e.code() == CIUIC_UNAVAILABLE, e.what());
      x *= static_cast<float>(r.world);
    }
  }
  require(x == static_cast<float>(r.world * r.world * r.world), "all three groups worked");
  try {
    const Communicator g(r.host, r.rank, r.world, Setup{10s, "^lo", true});
    throw std::runtime_error("an exclusion list was taken");
  } catch (const Error& e) {
    require(e.code() == CIUIC_INVALID, e.what());
  }
  expect_failure([&] {
    const Communicator g(r.host, r.rank, r.world, Setup{1s, "no-such-if0", true});
  });
}

/// Groups come and go; a rank that is first at the end takes nothing from the others.
void reconnect(Rank& r) {
  for (int i = 0; i < 10; ++i) {
    const auto g = r.communicator();
    std::vector<float> x(100000, 1);
    g->run(all_reduce(x.data(), x.data(), kF32, 100000));
    require(x[99999] == static_cast<float>(r.world), "the sum is right");
  }
}

/// Destroyed with an operation under way.
void unfinished(Rank& r) {
  auto g = r.communicator();
  std::vector<float> x(1 << 16);
  g->run(barrier());  // all are connected
  if (r.rank == 0) {
    const Work work = g->submit(all_reduce(x.data(), x.data(), kF32, 1 << 16));
    const auto start = Clock::now();
    const Host host = g->host();
    g.reset();
    std::cout << "destroy=" << seconds_since(start) << std::endl;
    expect_failure([&] { work.wait(host); });
  }
  r.meet("end");
}

void bench(Rank& r) {
  const auto g = r.communicator();
  const auto measure = [&](const char* name, int rounds, const std::function<void()>& body) {
    double best = 1e9;
    for (int repeat = 0; repeat < 3; ++repeat) {
      g->run(barrier());
      const auto start = Clock::now();
      for (int i = 0; i < rounds; ++i) {
        body();
      }
      best = std::min(best, seconds_since(start) / rounds);
    }
    std::cout << name << "=" << best * 1e6 << std::endl;
  };
  constexpr int64_t kBig = 4194300;  // divides by 2, 3, 4
  std::vector<float> x(static_cast<size_t>(kBig), 1);
  std::vector<float> y(static_cast<size_t>(kBig), 1);
  std::vector<uint16_t> h(static_cast<size_t>(kBig) * 2, 0x3F80);
  std::vector<double> s(8, 1);
  measure("all_reduce_16MiB_us", 3, [&] { g->run(all_reduce(x.data(), x.data(), kF32, kBig)); });
  measure("all_reduce_bf16_16MiB_us", 3,
          [&] { g->run(all_reduce(h.data(), h.data(), kBF16, kBig * 2)); });
  measure("all_reduce_avg_16MiB_us", 3,
          [&] { g->run(all_reduce(x.data(), x.data(), kF32, kBig, CIUIC_REDUCE_AVG)); });
  measure("reduce_scatter_16MiB_us", 3, [&] {
    Call call{Tensor(x.data(), kF32, {kBig}), Tensor(y.data(), kF32, {kBig / r.world}), {}};
    call.c.op = CIUIC_OP_REDUCE_SCATTER;
    call.c.reduce = CIUIC_REDUCE_SUM;
    g->run(std::move(call));
  });
  measure("all_gather_16MiB_us", 3, [&] {
    Call call{Tensor(x.data(), kF32, {kBig / r.world}),
              Tensor(y.data(), kF32, {kBig / r.world * r.world}),
              {}};
    call.c.op = CIUIC_OP_ALL_GATHER;
    g->run(std::move(call));
  });
  measure("broadcast_16MiB_us", 3, [&] {
    Call call{Tensor(), Tensor(x.data(), kF32, {kBig}), {}};
    call.c.op = CIUIC_OP_BROADCAST;
    g->run(std::move(call));
  });
  measure("all_reduce_tree_16MiB_us", 3, [&] {
    Call call = all_reduce(x.data(), x.data(), kF32, kBig);
    call.c.flags = CIUIC_COLLECTIVE_TREE;
    g->run(std::move(call));
  });
  measure("all_to_all_16MiB_us", 3,
          [&] { g->run(move(CIUIC_OP_ALL_TO_ALL, x.data(), kBig, y.data(), kBig, kF32)); });
  const int right = (r.rank + 1) % r.world;
  const int left = (r.rank + r.world - 1) % r.world;
  const auto pass = [&](int64_t n) {
    std::vector<Call> calls{send(x.data(), kF32, n, right), receive(y.data(), kF32, n, left)};
    g->submit(calls).wait(g->host());
  };
  measure("send_and_receive_16MiB_us", 3, [&] { pass(kBig); });
  measure("send_and_receive_64B_us", 100, [&] { pass(16); });
  measure("all_reduce_64B_us", 100, [&] { g->run(all_reduce(s.data(), s.data(), kF64, 8)); });
  measure("barrier_us", 100, [&] { g->run(barrier()); });
}

void run(const std::string& scenario, Rank& r) {
  const std::map<std::string, std::function<void()>> scenarios{
      {"numbers", [&] { numbers(r); }},
      {"moves", [&] { check_moves(*r.communicator()); }},
      {"messages", [&] { check_messages(*r.communicator()); }},
      {"groups", [&] { concurrent_groups(r); }},
      {"mismatch", [&] { mismatches(r); }},
      {"silent_moves", [&] { silent_in_moves(r); }},
      {"killed_moves", [&] { killed_in_moves(r); }},
      {"abort_receive", [&] { abort_open_receive(r); }},
      {"in_flight", [&] { in_flight(r); }},
      {"silent", [&] { silent(r); }},
      {"short_request", [&] { short_request(r); }},
      {"stopped_last", [&] { stopped(r, r.world - 1); }},
      {"stopped_first", [&] { stopped(r, 0); }},
      {"killed_last", [&] { killed(r, r.world - 1); }},
      {"killed_first", [&] { killed(r, 0); }},
      {"abort", [&] { abort_group(r); }},
      {"split", [&] { split(r); }},
      {"capabilities", [&] { capabilities(r); }},
      {"missing_member", [&] { missing_member(r); }},
      {"refused", [&] { refused(r); }},
      {"addresses", [&] { addresses(r); }},
      {"reconnect", [&] { reconnect(r); }},
      {"unfinished", [&] { unfinished(r); }},
      {"bench", [&] { bench(r); }},
  };
  scenarios.at(scenario)();
}

}  // namespace
}  // namespace ciuic::tests

int main(int argc, char** argv) {
  using namespace ciuic;
  if (argc != 5) {
    std::cerr << "usage: gloo_rank SCENARIO RANK WORLD ADDRESS\n";
    return 2;
  }
  FLAGS_caffe2_log_level = 3;  // as the host does: c10d's log lines are not for users
  try {
    tests::Rank rank{std::atoi(argv[2]), std::atoi(argv[3]), argv[4], nullptr, {}, nullptr};
    core::RendezvousOptions options;
    options.rank = rank.rank;
    options.world = rank.world;
    options.address = rank.address;
    options.run_id = "communicator_test";
    rank.rendezvous = core::join(options);
    rank.kv = std::make_unique<core::KvService>(rank.host.table(), *rank.rendezvous, "gloo/0");
    rank.host.offer("ciuic.kv", rank.kv->table());
    tests::run(argv[1], rank);
    if (!rank.host.balanced()) {
      throw std::runtime_error("statuses or memory were not given back");
    }
  } catch (const Error& e) {
    std::cerr << "failed: " << code_name(e.code()) << ": " << e.what() << std::endl;
    return 1;
  } catch (const std::exception& e) {
    std::cerr << "failed: " << e.what() << std::endl;
    return 1;
  }
  return 0;
}
