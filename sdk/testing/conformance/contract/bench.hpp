// SPDX-License-Identifier: MIT
//
// A host for one plugin alone in the world (rank 0 of 1) with every service that a plugin may ask
// for, each of which can fail or be missing.
#pragma once

#include <any>
#include <deque>
#include <memory>
#include <string>

#include <ciuic/testing/memory_files.hpp>
#include <ciuic/testing/rank_group.hpp>
#include <ciuic/testing/reference_data.hpp>
#include <ciuic/testing/reference_io.hpp>
#include <ciuic/testing/reference_optimizer.hpp>
#include <ciuic/testing/shared_store.hpp>

#include "faulty_service.hpp"

namespace ciuic::testing::contract {

class Bench {
 public:
  Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench();

  [[nodiscard]] Rank& rank() { return *rank_; }
  [[nodiscard]] TestHost& host() { return rank_->host; }
  [[nodiscard]] FaultPlan& faults() { return faults_; }
  [[nodiscard]] Seat seat() const { return rank_->seat(); }
  [[nodiscard]] MemoryFiles& files() { return files_; }

  /// Forgets what the host's own parts have written down so far, so that a long run shows the
  /// plugin's memory only.
  void tidy();

  /// Keeps what an instance was shown alive until after its destroy.
  template <typename T>
  T& keep(std::shared_ptr<T> object) {
    T& out = *object;
    kept_.emplace_back(std::move(object));
    return out;
  }

 private:
  struct Services;

  FaultPlan faults_;
  MemoryFiles files_;
  std::unique_ptr<Rank> rank_;
  std::unique_ptr<Services> services_;
  std::deque<std::any> kept_;
};

}  // namespace ciuic::testing::contract
