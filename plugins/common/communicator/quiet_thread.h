// SPDX-License-Identifier: MIT
//
// Threads that leave the signals to the main thread.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace ciuic::plugins {

/// Threads made under it take no signals.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

template <typename Body>
std::thread quiet_thread(Body body) {
  const BlockSignals blocked;
  return std::thread(std::move(body));
}

}  // namespace ciuic::plugins
