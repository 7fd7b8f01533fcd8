// SPDX-License-Identifier: MIT
//
// The same work for as long as --soak-seconds says. What it holds after half of the time is
// compared with what it holds in the end.
#include <algorithm>

#include "../contract/exercise.hpp"
#include "../process_state.hpp"
#include "../runner_message.hpp"
#include "soak_tests.hpp"

namespace ciuic::testing {
namespace {

using namespace contract;

/// A slow leak shows as bytes in each of many turns; pools may still grow by some blocks.
constexpr double kBytesPerTurn = 8;
constexpr double kPoolBytes = 256 << 10;

/// Turns until time is up; what grew in the second half fails the test.
template <typename Turn>
void require_steady(double seconds, const char* what, Turn turn) {
  const int64_t begin = now_ns();
  const int64_t half = begin + static_cast<int64_t>(seconds * 0.5e9);
  const int64_t end = begin + static_cast<int64_t>(seconds * 1e9);
  int64_t turns = 0;
  for (; turns < 3 || now_ns() < half; ++turns) {
    turn(turns);
  }
  const ProcessResources before = process_resources();
  const size_t heap_before = heap_bytes();
  const size_t resident_before = resident_bytes();
  int64_t more = 0;
  for (; more < 3 || now_ns() < end; ++more) {
    turn(turns + more);
  }
  const auto grown = [](size_t after, size_t earlier) {
    return after > earlier ? static_cast<double>(after - earlier) : 0.0;
  };
  const double heap = grown(heap_bytes(), heap_before);
  const double resident = grown(resident_bytes(), resident_before);
  const std::string left = left_behind(before);
  require(left.empty(), "the second half of the time left behind " + left);
  const double bytes = std::max(heap, resident);
  require(bytes < kPoolBytes || bytes / static_cast<double>(more) < kBytesPerTurn,
          "memory grew by " + std::to_string(static_cast<int64_t>(bytes)) + " bytes in " +
              std::to_string(more) + " " + what + " of the second half of the time");
}

}  // namespace

void many_lives_take_no_more(const TestContext& t) {
  require_steady(t.soak_seconds, "lives", [&](int64_t) {
    Bench bench;
    whole_life(t, bench, Calls(bench.host()), 10);
    require(bench.host().balanced(), "after a life: " + bench.host().imbalance());
  });
}

void a_long_life_takes_no_more(const TestContext& t) {
  Bench bench;
  const Calls calls(bench.host());
  Working work(t, bench, calls);
  require_steady(t.soak_seconds, "rounds", [&](int64_t i) {
    work.round(static_cast<uint64_t>(i));
    bench.tidy();
  });
  work.instance.quiesce();
  work.instance.destroy();
  require(bench.host().balanced(), "after a long life: " + bench.host().imbalance());
}

}  // namespace ciuic::testing
