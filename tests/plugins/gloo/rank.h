// SPDX-License-Identifier: MIT
//
// What a rank of a test has, and how it says what it saw.
#pragma once

#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/parallel/kv_service.h"
#include "core/parallel/rendezvous.h"
#include "loaded_plugin.h"

namespace ciuic::tests {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

inline void require(bool condition, const std::string& what) {
  if (!condition) {
    throw std::runtime_error("not so: " + what);
  }
}

struct Rank {
  int rank;
  int world;
  std::string address;
  std::unique_ptr<core::Rendezvous> rendezvous;
  testing::TestHost host;
  std::unique_ptr<core::KvService> kv;

  [[nodiscard]] std::unique_ptr<Communicator> communicator(std::chrono::nanoseconds timeout = 30s) {
    return std::make_unique<Communicator>(host, rank, world, Setup{timeout, "", true});
  }
  /// All ranks are here; not through the communicator.
  void meet(const std::string& where) const {
    rendezvous->set(where + std::to_string(rank), "here");
    for (int r = 0; r < world; ++r) {
      require(rendezvous->get(where + std::to_string(r), 20s).has_value(),
              "all ranks come to " + where);
    }
    rendezvous->add(where, 1);
    while (rank == 0 &&
           rendezvous->add(where, 0) < world) {  // rank 0 has the store, so it leaves last
      std::this_thread::sleep_for(1ms);
    }
  }
};

/// Runs what must fail; prints code, peer, seconds and text.
inline void expect_failure(const std::function<void()>& body) {
  const auto start = Clock::now();
  try {
    body();
  } catch (const Error& e) {
    std::cout << "code=" << e.code() << "\npeer=" << e.peer()
              << "\nseconds=" << seconds_since(start) << "\ntext=" << e.what() << std::endl;
    return;
  }
  throw std::runtime_error("it did not fail");
}

}  // namespace ciuic::tests
