// SPDX-License-Identifier: MIT
//
// What goes wrong in the host: memory runs out, a service is missing, a service fails. Each ends in
// a status or in work without it, and leaves nothing behind.
#include <algorithm>
#include <random>

#include "../process_state.hpp"
#include "../runner_message.hpp"
#include "contract_tests.hpp"
#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

constexpr uint64_t kRounds = 2;
constexpr size_t kMostFaults = 300;
constexpr double kSeconds = 20;

bool is_known_code(int32_t code) {
  return code > CIUIC_OK && code <= CIUIC_DATA_LOSS &&
         std::string(code_name(code)) != "unknown status";
}

/// The code of the status that a life ended in; OK: it came to its end.
int32_t live(const TestContext& t, Bench& bench, const std::string& fault) {
  int32_t code = CIUIC_OK;
  const ProcessResources before = process_resources();
  try {
    whole_life(t, bench, Calls(bench.host()), kRounds);
  } catch (const Error& e) {
    code = e.code();
    require(*e.what() != '\0', fault + ": the status has no text");
    require(is_known_code(code),
            fault + ": the status' code " + std::to_string(code) + " is unknown");
  }
  const std::string imbalance = bench.host().imbalance();
  require(imbalance.empty(), fault + ", and after destroy " + imbalance);
  const std::string left = left_behind(before);
  require(left.empty(), fault + ", and after destroy there are still " + left);
  return code;
}

/// 0 ... count - 1, or a choice of them when there are many, in order.
std::vector<int64_t> some_of(int64_t count, uint64_t seed) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<int64_t>(i);
  }
  if (all.size() > kMostFaults) {
    std::mt19937_64 random(seed);
    std::shuffle(all.begin() + kMostFaults / 2, all.end(), random);
    all.resize(kMostFaults);
    std::sort(all.begin(), all.end());
  }
  return all;
}

class TimeBox {
 public:
  [[nodiscard]] bool is_open() const { return now_ns() < deadline_; }

 private:
  int64_t deadline_ = now_ns() + static_cast<int64_t>(kSeconds * 1e9);
};

std::string ordinal(int64_t index) { return "number " + std::to_string(index + 1); }

}  // namespace

void allocation_fails(const TestContext& t) {
  int64_t allocations = 0;
  {
    Bench bench;
    live(t, bench, "without faults");
    allocations = bench.host().allocations();
  }
  if (allocations == 0) {
    throw NotOffered("it takes no memory from the host");
  }
  const TimeBox time;
  for (const int64_t k : some_of(allocations, t.seed)) {
    Bench bench;
    bench.host().fail_allocations_after(k);
    const std::string fault = "the host's memory ran out at allocation " + ordinal(k);
    const int32_t code = live(t, bench, fault);
    require(code == CIUIC_OK || code == CIUIC_EXHAUSTED,
            fault + ": got \"" + code_name(code) + "\", expected \"" + code_name(CIUIC_EXHAUSTED) +
                "\" (EXHAUSTED), on which the host makes room and tries again");
    if (!time.is_open()) {
      break;
    }
  }
}

void a_service_is_missing(const TestContext& t) {
  std::vector<std::string> asked;
  {
    Bench bench;
    bench.host().forget_asked();
    live(t, bench, "without faults");
    asked = bench.host().asked();
  }
  if (asked.empty()) {
    throw NotOffered("it asks for no service");
  }
  for (const std::string& name : asked) {
    Bench bench;
    bench.host().offer(name, nullptr);
    live(t, bench, "the host has no service " + name);
  }
}

void a_service_fails(const TestContext& t) {
  int64_t calls = 0;
  {
    Bench bench;
    bench.faults().rest();
    live(t, bench, "without faults");
    calls = bench.faults().count();
  }
  if (calls == 0) {
    throw NotOffered("it calls no service that can fail");
  }
  const TimeBox time;
  for (const int64_t k : some_of(calls, t.seed)) {
    Bench bench;
    bench.faults().strike(k, CIUIC_UNAVAILABLE);
    live(t, bench, "a service failed at call " + ordinal(k));
    if (!time.is_open()) {
      break;
    }
  }
}

/// Calls::run throws CheckFailed for what comes out of a call.
void exceptions_stay_inside(const TestContext& t) {
  {
    Bench bench;
    live(t, bench, "without faults");
  }
  std::vector<std::string> asked;
  {
    Bench bench;
    bench.host().forget_asked();
    bench.host().fail_allocations_after(0);
    live(t, bench, "the host has no memory");
    asked = bench.host().asked();
  }
  Bench bench;
  for (const std::string& name : asked) {
    bench.host().offer(name, nullptr);
  }
  live(t, bench, "the host has no services");
}

}  // namespace ciuic::testing::contract
