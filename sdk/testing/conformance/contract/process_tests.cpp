// SPDX-License-Identifier: MIT
//
// The process belongs to the host: its settings stay, and its stdout and stderr too.
#include "../captured_output.hpp"
#include "../process_state.hpp"
#include "contract_tests.hpp"
#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

/// A life with every function in it that the plugin has.
void full_life(const TestContext& t, Bench& bench, const Calls& calls) {
  Working work(t, bench, calls);
  work.round(0);
  work.round(1);
  work.instance.quiesce();
  MemoryState state;
  work.instance.save(state);
  work.instance.resume();
  work.instance.load(state);
  work.instance.quiesce();
  work.instance.destroy();
}

}  // namespace

void settings_stay(const TestContext& t) {
  Bench bench;
  const Calls calls(bench.host(), [](const char* function, const std::function<void()>& call) {
    const ProcessSettings before = process_settings();
    call();
    const std::string changed = difference(before, process_settings());
    require(changed.empty(), std::string(function) + " changed " + changed +
                                 "; it belongs to the whole process: leave it, or put it back "
                                 "before returning");
  });
  full_life(t, bench, calls);
}

void nothing_is_printed(const TestContext& t) {
  const CapturedOutput captured;
  Bench bench;
  const Calls calls(bench.host(), [&](const char* function, const std::function<void()>& call) {
    call();
    const std::string text = captured.text();
    require(text.empty(), std::string(function) + " wrote to stdout or stderr: \"" + text +
                              "\"; use the host's log");
  });
  full_life(t, bench, calls);
}

}  // namespace ciuic::testing::contract
