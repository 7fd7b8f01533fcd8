// SPDX-License-Identifier: MIT
//
// Lives: many, at once, interrupted. What an instance took is back when destroy has returned.
#include <algorithm>

#include "../process_state.hpp"
#include "../runner_message.hpp"
#include "contract_tests.hpp"
#include "exercise.hpp"
#include "other_options.hpp"

namespace ciuic::testing::contract {
namespace {

constexpr int kLives = 1000;
constexpr double kSeconds = 6;  // a slow plugin lives fewer times

void require_balance(TestHost& host, const std::string& after) {
  const std::string imbalance = host.imbalance();
  require(imbalance.empty(), "after " + after + ": " + imbalance);
}

/// Lives one after another until `deadline`; how many, and by how many bytes the heap grew.
struct Growth {
  int lives = 0;
  double bytes = 0;

  // malloc's smallest block is 32 bytes with its head, so one lost in each life shows as that.
  [[nodiscard]] bool looks_like_a_leak() const {
    constexpr double kBytesPerLife = 24;
    // Of a few lives, as slow ones are, a pool's growth looks like that too.
    constexpr int kMany = 100;
    const double pool_bytes = lives >= kMany ? 256 : 4096;
    return bytes >= pool_bytes && bytes / lives >= kBytesPerLife;
  }
};

template <typename Live>
Growth grow(Live& live, int most, int64_t deadline) {
  Growth out;
  const size_t before = heap_bytes();
  while (out.lives < most && (out.lives < 3 || now_ns() < deadline)) {
    live();
    ++out.lives;
  }
  const size_t after = heap_bytes();
  out.bytes = after > before ? static_cast<double>(after - before) : 0;
  return out;
}

/// Runs lives until there were enough or time is up, then compares what the process holds. The
/// first few fill caches and allocators' pools; a pool that grows once more does so in one half of
/// the rest, a leak in both.
template <typename Live>
void require_no_growth(Live live) {
  constexpr int kFirst = 20;
  const int64_t begin = now_ns();
  const auto at = [begin](double share) {
    return begin + static_cast<int64_t>(share * kSeconds * 1e9);
  };
  (void)grow(live, kFirst, at(0.4));
  const ProcessResources before = process_resources();
  const Growth first = grow(live, (kLives - kFirst) / 2, at(0.7));
  const Growth second = grow(live, (kLives - kFirst) / 2, at(1.0));
  const std::string left = left_behind(before);
  const int lives = first.lives + second.lives;
  require(left.empty(), std::to_string(lives) + " lives left behind: " + left);
  const auto bytes = static_cast<int64_t>(first.bytes + second.bytes);
  require(!first.looks_like_a_leak() || !second.looks_like_a_leak(),
          std::to_string(lives) + " lives left " + std::to_string(bytes) +
              " bytes of heap behind, about " + std::to_string(bytes / lives) + " a life: a leak");
}

}  // namespace

void create_and_destroy_balance(const TestContext& t) {
  Bench bench;
  const Calls calls(bench.host());
  require_no_growth([&] {
    Instance instance(t, bench.host(), calls, {}, bench.seat());
    instance.destroy();
    require_balance(bench.host(), "create and destroy");
    bench.host().forget_logs();
  });
}

void work_balances(const TestContext& t) {
  require_no_growth([&] {
    Bench bench;
    whole_life(t, bench, Calls(bench.host()), 2);
    require_balance(bench.host(), "a life with work");
  });
}

/// The structs, options and texts of every call end at an inaccessible page, and are gone after it.
void structs_are_respected(const TestContext& t) {
  Bench bench;
  whole_life(t, bench, Calls(bench.host()), 4);
  require_balance(bench.host(), "a life with work");
}

void instances_are_independent(const TestContext& t) {
  Bench alone_bench;
  const Calls alone_calls(alone_bench.host());
  const std::string alone = whole_life(t, alone_bench, alone_calls, 4);

  Bench first_bench;
  Bench second_bench;
  const Calls first_calls(first_bench.host());
  const Calls second_calls(second_bench.host());
  const auto first_work = make_exercise(t, first_bench);
  const auto second_work = make_exercise(t, second_bench);
  Instance first(t, first_bench.host(), first_calls, {}, first_bench.seat());
  Instance second(t, second_bench.host(), second_calls, other_options(t, second_bench),
                  second_bench.seat());
  for (const auto& [work, instance] : {std::pair(&first_work, &first), {&second_work, &second}}) {
    (*work)->start(*instance);
    (*work)->first_values(*instance);
  }
  std::string together;
  for (uint64_t i = 0; i < 4; ++i) {
    together += first_work->round(first, i);
    second_work->round(second, i);
  }
  second.destroy();
  first.quiesce();
  first.destroy();
  if ((t.plugin.descriptor().flags & CIUIC_FLAG_DETERMINISTIC) != 0) {
    require(together == alone,
            "an instance gives other results beside a second one with other options than alone; it "
            "claims DETERMINISTIC, so state is shared between them");
  }
  require_balance(first_bench.host(), "the first instance's life");
  require_balance(second_bench.host(), "the second instance's life");
}

void quiesce_and_resume(const TestContext& t) {
  if (t.plugin.descriptor().quiesce == nullptr) {
    throw NotOffered("it has no quiesce");
  }
  Bench bench;
  const ProcessResources before = process_resources();
  const Calls calls(bench.host());
  Working work(t, bench, calls);
  work.round(0);
  work.instance.quiesce();
  const size_t threads = process_resources().threads;
  const std::string running = left_behind(before);
  require(threads <= before.threads || running.find("threads") == std::string::npos,
          "after quiesce there are still " + running + "; no thread of it may run then");
  work.instance.quiesce();
  work.instance.resume();
  if (t.plugin.descriptor().resume != nullptr) {
    work.round(1);
    work.instance.quiesce();
  }
  work.instance.destroy();
  require_balance(bench.host(), "quiesce, resume and destroy");
}

void after_quiesce(const TestContext& t) {
  if (t.plugin.descriptor().quiesce == nullptr) {
    throw NotOffered("it has no quiesce");
  }
  Bench bench;
  const Calls calls(bench.host());
  Working work(t, bench, calls);
  work.round(0);
  work.instance.quiesce();
  int32_t code = CIUIC_OK;
  try {
    work.round(1);
  } catch (const Error& e) {
    code = e.code();
  }
  require(code == CIUIC_PRECONDITION, std::string("work after quiesce, without resume: got ") +
                                          code_name(code) + ", expected " +
                                          code_name(CIUIC_PRECONDITION));
  work.instance.destroy();
  require_balance(bench.host(), "calls after quiesce");
}

}  // namespace ciuic::testing::contract
