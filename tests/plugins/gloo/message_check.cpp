// SPDX-License-Identifier: MIT
#include "message_check.h"

#include <algorithm>

namespace ciuic::tests {
namespace {

void require(bool condition, const std::string& what) {
  if (!condition) {
    throw std::runtime_error("not so: " + what);
  }
}

/// Everybody passes something to the right, in both orders of the two calls.
void ring(const Communicator& g) {
  const int right = (g.rank() + 1) % g.world();
  const int left = (g.rank() + g.world() - 1) % g.world();
  for (const int64_t n : {0, 1, 2, 3, 127, 1025, (1 << 20) + 1}) {
    for (const bool send_first : {true, false}) {
      std::vector<float> out(static_cast<size_t>(n), static_cast<float>(g.rank()));
      std::vector<float> in(static_cast<size_t>(n), -1);
      std::vector<Call> calls{send(out.data(), kF32, n, right), receive(in.data(), kF32, n, left)};
      if (!send_first) {
        std::swap(calls[0], calls[1]);
      }
      g.submit(calls).wait(g.host());
      require(std::count(in.begin(), in.end(), static_cast<float>(left)) == n,
              "a ring passes " + std::to_string(n) + " elements");
    }
  }
}

/// Tags decide, not the order; messages of one tag keep theirs.
void tags(const Communicator& g) {
  constexpr uint32_t kBig = 4'000'000'000U;
  if (g.rank() == 0) {
    int64_t x[4] = {10, 11, 12, 13};
    std::vector<Call> calls{send(x, kI64, 1, 1, 7), send(x + 1, kI64, 1, 1, kBig),
                            send(x + 2, kI64, 1, 1, 7), send(x + 3, kI64, 1, 1, 8)};
    g.submit(calls).wait(g.host());
  } else if (g.rank() == 1) {
    int64_t x[4] = {};
    const Work last = g.submit(receive(x + 3, kI64, 1, 0, 8));
    std::vector<Call> calls{receive(x + 1, kI64, 1, 0, kBig), receive(x, kI64, 1, 0, 7),
                            receive(x + 2, kI64, 1, 0, 7)};
    g.submit(calls).wait(g.host());
    last.wait(g.host());
    require(x[0] == 10 && x[1] == 11 && x[2] == 12 && x[3] == 13, "tags find their messages");
  }
}

/// Receives that stay open hold up nothing: collectives go on, and later messages arrive.
void many(const Communicator& g) {
  constexpr int kCount = 64;
  std::vector<std::vector<double>> data(kCount);
  std::vector<Work> works;
  const bool receives = g.rank() == 1;
  for (int i = 0; i < kCount && receives; ++i) {
    data[static_cast<size_t>(i)].assign(static_cast<size_t>(1 + i * 97), -1);
    std::vector<double>& x = data[static_cast<size_t>(i)];
    works.push_back(g.submit(
        receive(x.data(), kF64, static_cast<int64_t>(x.size()), 0, static_cast<uint32_t>(i % 5))));
  }
  for (int i = 0; i < 3; ++i) {
    float y = 1;
    g.run(all_reduce(&y, &y, kF32, 1));
    require(y == static_cast<float>(g.world()), "collectives pass open receives");
  }
  for (int i = 0; i < kCount && g.rank() == 0; ++i) {
    data[static_cast<size_t>(i)].assign(static_cast<size_t>(1 + i * 97), i);
    std::vector<double>& x = data[static_cast<size_t>(i)];
    works.push_back(g.submit(
        send(x.data(), kF64, static_cast<int64_t>(x.size()), 1, static_cast<uint32_t>(i % 5))));
  }
  for (auto work = works.rbegin(); work != works.rend(); ++work) {  // not in their order
    work->wait(g.host());
  }
  for (int i = 0; i < kCount && receives; ++i) {
    require(data[static_cast<size_t>(i)].back() == i, "message " + std::to_string(i) + " arrived");
  }
}

/// Messages and collectives in one submit; everybody with everybody.
void mixed(const Communicator& g) {
  std::vector<int32_t> out(static_cast<size_t>(g.world()));
  std::vector<int32_t> in(static_cast<size_t>(g.world()), -1);
  float sum = 1;
  std::vector<Call> calls{barrier()};
  for (int p = 0; p < g.world(); ++p) {
    const auto at = static_cast<size_t>(p);
    out[at] = g.rank() * 100 + p;
    calls.push_back(receive(&in[at], kI32, 1, p, 1));
    calls.push_back(send(&out[at], kI32, 1, p, 1));
  }
  calls.push_back(all_reduce(&sum, &sum, kF32, 1));
  g.submit(calls).wait(g.host());
  for (int p = 0; p < g.world(); ++p) {
    require(in[static_cast<size_t>(p)] == p * 100 + g.rank(), "everybody hears of everybody");
  }
  require(sum == static_cast<float>(g.world()), "a collective beside messages");
}

void to_oneself(const Communicator& g) {
  int32_t x[2] = {1, 2};
  int32_t y[2] = {};
  std::vector<Call> calls{receive(y, kI32, 2, g.rank(), 3), send(x, kI32, 2, g.rank(), 3)};
  g.submit(calls).wait(g.host());
  require(y[0] == 1 && y[1] == 2, "a message to oneself is a copy");
  const auto refused = [&](std::vector<Call> bad) {
    try {
      g.submit(bad).wait(g.host());
    } catch (const Error& e) {
      return e.code() == CIUIC_INVALID;
    }
    return false;
  };
  require(refused({send(x, kI32, 2, g.rank(), 3)}), "a send to oneself alone is INVALID");
  require(refused({send(x, kI32, 2, g.rank(), 3), receive(y, kI32, 2, g.rank(), 4)}),
          "tags of a message to oneself are equal");
  require(refused({send(x, kI32, 2, g.rank(), 3), receive(y, kI32, 1, g.rank(), 3)}),
          "sizes of a message to oneself are equal");
  require(refused({send(x, kI32, 2, g.world())}), "nobody is at that rank");
}

}  // namespace

void check_messages(const Communicator& g) {
  to_oneself(g);
  ring(g);
  mixed(g);
  if (g.world() > 1) {
    tags(g);
    many(g);
  }
  g.run(barrier());
}

}  // namespace ciuic::tests
