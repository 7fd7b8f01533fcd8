// SPDX-License-Identifier: MIT
#include "core/plugin/trampoline/breadcrumb.h"

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <unistd.h>
#include <utility>

#include "core/plugin/trampoline/crumb_board.h"

namespace ciuic::core {
namespace {

/// Head of the list of stacks. Constant-initialised: the first call may come from anywhere.
constinit std::atomic<CrumbStack*> head{nullptr};

}  // namespace

thread_local constinit CrumbStack* CrumbStack::mine_ = nullptr;

/// Gives the stack to another thread when this one ends. A thread that ends inside of a call is one in
/// which exit() was called: its crumbs stay, to say where.
struct CrumbStackReturn {
  CrumbStack* stack = nullptr;
  ~CrumbStackReturn() {
    if (stack != nullptr && stack->depth() == 0) {
      CrumbStack::mine_ = nullptr;
      stack->depth_.store(0, std::memory_order_release);
      stack->is_taken_.store(false, std::memory_order_release);
    }
  }
};

const CrumbStack* CrumbStack::first() noexcept { return head.load(std::memory_order_acquire); }

CrumbStack& CrumbStack::enlist() {
  static thread_local CrumbStackReturn at_thread_end;
  CrumbStack* stack = head.load(std::memory_order_acquire);
  for (; stack != nullptr; stack = stack->next_) {
    bool is_taken = false;
    if (stack->is_taken_.compare_exchange_strong(is_taken, true)) {
      break;
    }
  }
  if (stack == nullptr) {
    // Never freed: a sampler may hold it. Where the launcher sees it, if there is one.
    void* shared = CrumbBoard::room_for_stack();
    stack = shared != nullptr ? new (shared) CrumbStack : new CrumbStack;
    stack->next_ = head.load(std::memory_order_relaxed);
    while (!head.compare_exchange_weak(stack->next_, stack, std::memory_order_release,
                                       std::memory_order_relaxed)) {
    }
  }
  stack->thread_.store(static_cast<int>(gettid()), std::memory_order_relaxed);
  at_thread_end.stack = stack;
  mine_ = stack;
  return *stack;
}

bool CrumbStack::read(uint32_t level, Crumb& out) const noexcept {
  const Slot& slot = slots_[level];
  out.ticket = slot.ticket.load(std::memory_order_acquire);
  out.plugin = slot.plugin.load(std::memory_order_acquire);
  out.function = slot.function.load(std::memory_order_acquire);
  const uint64_t packed = slot.sequence.load(std::memory_order_acquire);
  out.sequence = packed >> 1;
  out.is_wait = (packed & 1) != 0;
  return out.ticket != 0 && slot.ticket.load(std::memory_order_acquire) == out.ticket;
}

const PluginIdentity& identity_of(const ciuic_descriptor& d) {
  return identity_of(d.kind, d.name, d.version);
}

const PluginIdentity& identity_of(uint32_t kind, const std::string& name,
                                  const std::string& version) {
  using Key = std::pair<uint32_t, std::string>;
  static std::mutex mutex;
  static auto& known = *new std::map<Key, std::unique_ptr<PluginIdentity>>;  // outlives all threads
  const Key key{kind, name + " " + version};
  const std::lock_guard lock(mutex);
  std::unique_ptr<PluginIdentity>& entry = known[key];
  if (!entry) {
    entry = std::make_unique<PluginIdentity>(PluginIdentity{key.first, key.second});
    CrumbBoard::name(entry.get(), entry->label.c_str());
  }
  return *entry;
}

}  // namespace ciuic::core
