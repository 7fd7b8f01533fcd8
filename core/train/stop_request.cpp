// SPDX-License-Identifier: MIT
#include "core/train/stop_request.h"

#include <signal.h>
#include <unistd.h>

namespace ciuic::core {
namespace {

std::atomic<bool> raised{false};
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

void on_signal(int number) {
  if (raised.exchange(true)) {
    _exit(128 + number);
  }
}

}  // namespace

std::atomic<bool>& StopRequest::flag() noexcept { return raised; }

void StopRequest::install() {
  struct sigaction action {};
  action.sa_handler = &on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace ciuic::core
