// SPDX-License-Identifier: MIT
//
// Breadcrumbs: which plugin, which function and which call every thread is inside of. The host's
// way into a plugin leaves one at the door and takes it back on return, so that a crash or a hang
// has a name. A push is a few plain stores: no clock, no lock. Who samples from another thread (the
// watchdog) measures time itself; who reads in a signal handler reads the own thread's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include <ciuic/abi/plugin.h>

namespace ciuic::core {

/// Whom to blame. Lives for ever, so that a sampler never reads what is gone.
struct PluginIdentity {
  uint32_t kind = 0;
  std::string label;  // "gloo 1.2.0"
};

/// The one identity of this name and version.
const PluginIdentity& identity_of(uint32_t kind, const std::string& name,
                                  const std::string& version);
const PluginIdentity& identity_of(const ciuic_descriptor& descriptor);

/// One call, as a reader sees it.
struct Crumb {
  const PluginIdentity* plugin = nullptr;
  const char* function = nullptr;  // "communicator.submit"; lives for ever
  uint64_t sequence = 0;           // the instance's calls, from 1
  bool is_wait = false;  // waiting for peers: in the work that this call returned, or in it
  uint64_t ticket = 0;   // the thread's calls: another call has another ticket
};

/// One thread's stack of crumbs. Written by its thread alone, read by any.
class CrumbStack {
 public:
  /// Calls nest: sharding into communicator into profiler. What lies deeper is counted, not kept.
  static constexpr uint32_t kDeepest = 16;

  /// This thread's, made at its first call and reused after its end.
  static CrumbStack& mine() {
    CrumbStack* stack = mine_;
    return stack != nullptr ? *stack : enlist();
  }
  /// This thread's, or NULL; for signal handlers.
  static const CrumbStack* mine_if_any() noexcept { return mine_; }
  /// All threads' stacks, in use or not: a list that only grows.
  static const CrumbStack* first() noexcept;
  [[nodiscard]] const CrumbStack* next() const noexcept { return next_; }

  [[nodiscard]] uint32_t depth() const noexcept {
    const uint32_t depth = depth_.load(std::memory_order_acquire);
    return depth < kDeepest ? depth : kDeepest;
  }
  /// False when the crumb changed while it was read.
  bool read(uint32_t level, Crumb& out) const noexcept;
  [[nodiscard]] int thread() const noexcept { return thread_.load(std::memory_order_relaxed); }

  uint32_t push(const PluginIdentity& plugin, const char* function, uint64_t sequence,
                bool is_wait) noexcept {
    const uint32_t level = depth_.load(std::memory_order_relaxed);
    if (level < kDeepest) {
      Slot& slot = slots_[level];
      slot.ticket.store(0, std::memory_order_relaxed);  // a reader drops what it reads meanwhile
      std::atomic_signal_fence(std::memory_order_seq_cst);
      slot.plugin.store(&plugin, std::memory_order_release);
      slot.function.store(function, std::memory_order_release);
      slot.sequence.store(sequence << 1 | (is_wait ? 1 : 0), std::memory_order_release);
      slot.ticket.store(++tickets_, std::memory_order_release);
    }
    depth_.store(level + 1, std::memory_order_release);
    return level;
  }
  void pop(uint32_t level) noexcept { depth_.store(level, std::memory_order_release); }

 private:
  struct Slot {
    std::atomic<uint64_t> ticket{0};
    std::atomic<const PluginIdentity*> plugin{nullptr};
    std::atomic<const char*> function{nullptr};
    std::atomic<uint64_t> sequence{0};
  };
  friend struct CrumbStackReturn;

  static CrumbStack& enlist();
  [[gnu::tls_model("initial-exec")]] static thread_local constinit CrumbStack* mine_;

  std::atomic<uint32_t> depth_{0};
  std::atomic<bool> is_taken_{true};
  std::atomic<int> thread_{0};
  uint64_t tickets_ = 0;
  CrumbStack* next_ = nullptr;
  std::array<Slot, kDeepest> slots_;
};

/// A crumb for a scope.
class CrumbScope {
 public:
  CrumbScope(const PluginIdentity& plugin, const char* function, uint64_t sequence,
             bool is_wait = false) noexcept
      : stack_(CrumbStack::mine()), level_(stack_.push(plugin, function, sequence, is_wait)) {}
  CrumbScope(const CrumbScope&) = delete;
  CrumbScope& operator=(const CrumbScope&) = delete;
  ~CrumbScope() { stack_.pop(level_); }

 private:
  CrumbStack& stack_;
  const uint32_t level_;
};

}  // namespace ciuic::core
