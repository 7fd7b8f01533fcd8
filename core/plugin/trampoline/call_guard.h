// SPDX-License-Identifier: MIT
//
// The door to one instance's plugin: numbers its calls, leaves a breadcrumb, and is the one place
// where an exception that a plugin let out is caught. Such a plugin broke its contract: the call
// fails with a status that blames it, later calls fail likewise, and the host ends with "our bug"
// turned into its bug (Instance::check).
#pragma once

#include <atomic>
#include <cstdint>
#include <cxxabi.h>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>

#include "core/plugin/trampoline/breadcrumb.h"

namespace ciuic::core {

/// Thread rule: any thread.
class CallGuard {
 public:
  CallGuard(const ciuic_descriptor& descriptor, const ciuic_host* host)
      : plugin_(identity_of(descriptor)), host_(host) {}
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

  [[nodiscard]] const PluginIdentity& plugin() const noexcept { return plugin_; }
  [[nodiscard]] const ciuic_host* host() const noexcept { return host_; }
  /// The number of the next call.
  uint64_t number() noexcept { return calls_.fetch_add(1, std::memory_order_relaxed) + 1; }

  /// Runs `body`, which calls the plugin's `function`.
  template <typename Body>
  auto call(const char* function, uint64_t sequence, bool is_wait, Body&& body)
      -> std::invoke_result_t<Body> {
    using R = std::invoke_result_t<Body>;
    if constexpr (std::is_same_v<R, ciuic_status*>) {
      if (has_escaped()) [[unlikely]] {
        return escaped_status();
      }
    }
    const CrumbScope crumb(plugin_, function, sequence, is_wait);
    try {
      if constexpr (std::is_same_v<R, ciuic_status*>) {
        return taken(body());
      } else {
        return body();
      }
    } catch (abi::__forced_unwind&) {
      throw;  // the thread is being cancelled
    } catch (...) {
      note_escaped(function, sequence);
    }
    if constexpr (std::is_same_v<R, ciuic_status*>) {
      return escaped_status();
    } else {
      return R();
    }
  }

  /// Did an exception come out of the plugin?
  [[nodiscard]] bool has_escaped() const noexcept {
    return has_escaped_.load(std::memory_order_acquire);
  }
  /// "it threw out of optimizer.update, call 12: <what>".
  [[nodiscard]] std::string escaped() const;

 private:
  void note_escaped(const char* function, uint64_t sequence) noexcept;
  [[nodiscard]] ciuic_status* escaped_status() const noexcept;
  /// Reads a status once while the plugin still has the blame for what it points at.
  ciuic_status* taken(ciuic_status* status) const noexcept;

  const PluginIdentity& plugin_;
  const ciuic_host* host_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<bool> has_escaped_{false};
  mutable std::mutex mutex_;
  std::string escaped_;
};

}  // namespace ciuic::core
