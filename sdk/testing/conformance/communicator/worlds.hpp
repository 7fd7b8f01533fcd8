// SPDX-License-Identifier: MIT
//
// A test's body on every rank of groups of several sizes. A size that create refuses is left out;
// a test that found nothing to try is NotOffered; a rank that fails fails the test with its number.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "group.hpp"

namespace ciuic::testing::communicator {

/// What a test's body works with, on one rank.
class Scene {
 public:
  Scene(const TestContext& t, ProcessRank& r, Group& g) : test(t), rank(r), group(g) {}

  const TestContext& test;
  ProcessRank& rank;
  Group& group;

  [[nodiscard]] int world() const noexcept { return group.size(); }
  /// The same rank in a part of the group; what it tries counts here.
  [[nodiscard]] Scene inside(Group& part) const { return Scene(test, rank, part); }
  [[nodiscard]] int64_t patient(int64_t nanoseconds) const {
    return static_cast<int64_t>(static_cast<double>(nanoseconds) * test.patience);
  }
  /// Something was tried. A body that never says so tried nothing.
  void tried() noexcept { ++num_tried_; }
  /// Bits that all ranks must have alike, of what `label` names.
  void same_on_all_ranks(uint64_t bits, const std::string& label);

  [[nodiscard]] std::string answer() const;

 private:
  int64_t num_tried_ = 0;
  std::string bits_;
};

using SceneBody = std::function<void(Scene&)>;

/// The sizes of the number tests.
inline const std::vector<int> kWorlds{1, 2, 3, 4, 5, 8};

struct WorldRun {
  std::vector<int> worlds = kWorlds;
  int64_t limit_ns = 60 * kSecond;  // a size, before patience
  std::vector<int> doomed = {};     // ranks that die in the test; -1: the last
};

/// Runs `body` on all ranks of each size. The group is destroyed after the body, and everything it
/// took from the host must have come back.
void on_worlds(const TestContext& test, const WorldRun& run, const SceneBody& body);

}  // namespace ciuic::testing::communicator
