// SPDX-License-Identifier: MIT
#include "core/plugin/trampoline/watchdog.h"

#include <algorithm>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "core/config/quantity.h"
#include "core/log/failure.h"
#include "core/plugin/trampoline/last_words.h"

namespace ciuic::core {
namespace {

using std::chrono::nanoseconds;

/// Looks per limit: what is over it is found at most an eighth late.
constexpr int kLooks = 8;
constexpr nanoseconds kShortestPause = std::chrono::milliseconds(5);
constexpr nanoseconds kLongestPause = std::chrono::seconds(5);

std::string shown(nanoseconds t) {
  return format_duration(std::chrono::duration_cast<std::chrono::milliseconds>(t));
}

}  // namespace

std::optional<HungCall> HangDetector::look_at(const CrumbStack& stack, ThreadSeen& seen,
                                              Time now) const {
  const uint32_t depth = stack.depth();
  std::array<Crumb, CrumbStack::kDeepest> crumbs;
  for (uint32_t i = 0; i < depth; ++i) {
    if (!stack.read(i, crumbs[i])) {
      return std::nullopt;  // in motion: not hung
    }
    if (seen.levels[i].ticket != crumbs[i].ticket) {
      seen.levels[i] = {crumbs[i].ticket, now};
    }
  }
  const bool waits = depth > 0 && crumbs[depth - 1].is_wait;
  for (uint32_t i = 0; waits && i + 1 < depth; ++i) {
    seen.levels[i].since += now - seen.last_look;
    seen.levels[i].since = std::min(seen.levels[i].since, now);
  }
  for (uint32_t i = depth; i-- > 0;) {
    const nanoseconds elapsed = now - seen.levels[i].since;
    if (elapsed > (crumbs[i].is_wait ? wait_limit_ : limit_)) {
      return HungCall{crumbs[i], stack.thread(), elapsed};
    }
  }
  return std::nullopt;
}

std::optional<HungCall> HangDetector::look(Time now) {
  for (const CrumbStack* s = CrumbStack::first(); s != nullptr; s = s->next()) {
    ThreadSeen& seen = threads_.try_emplace(s, ThreadSeen{{}, now}).first->second;
    std::optional<HungCall> hung = look_at(*s, seen, now);
    seen.last_look = now;
    if (hung) {
      return hung;
    }
  }
  return std::nullopt;
}

Watchdog::Watchdog(nanoseconds limit, nanoseconds wait_limit, OnHang on_hang)
    : detector_(limit, wait_limit),
      pause_(std::clamp(limit / kLooks, kShortestPause, kLongestPause)),
      on_hang_(std::move(on_hang)),
      thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::watch() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  pthread_setname_np(pthread_self(), "ciuic-watchdog");
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, pause_, [this] { return is_over_; })) {
    if (const auto hung = detector_.look(std::chrono::steady_clock::now())) {
      on_hang_(*hung);
      return;
    }
  }
}

void end_hung_rank(const HungCall& call, nanoseconds limit) {
  WordLine line;
  line << "ciuic: error: ";
  say_crumb(line, call.crumb, "did not return from");
  line << ", for " << shown(call.elapsed).c_str() << ":";
  say_place(line);
  line << " thread=" << call.thread << "; plugins.call_timeout is " << shown(limit).c_str();
  write_last_words(line);
  constexpr int kCode = static_cast<int>(ExitCode::Communication);
  say_done(kCode);
  _exit(kCode);
}

}  // namespace ciuic::core
