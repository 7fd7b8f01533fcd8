// SPDX-License-Identifier: MIT
//
// Who is to blame when a group fails? The ranks tell each other through the kv service that they
// have noticed: whoever says nothing, or has no process any more (liveness.h), it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ciuic/error.hpp>

#include "communicator/key_value.h"

namespace ciuic::plugins::gloo {

/// A rank of the group.
struct Member {
  int32_t global_rank = 0;
  std::string identity;  // of its process, for death_of
};

/// The first failure that a rank saw, and the group ranks that its operation waited for (empty:
/// all).
struct Failure {
  Error cause;
  std::vector<int> partners;
};

/// Any thread. Errors name global ranks.
class Blame {
 public:
  Blame(KeyValue kv, std::vector<Member> members, int rank);

  /// What is wrong with the group although this rank's operations still wait; "" for nothing.
  [[nodiscard]] std::string look_around() const;
  /// A peer whose process has ended.
  [[nodiscard]] std::optional<Error> find_dead(const Error& cause) const;
  /// Tells the peers what this rank saw. Throws when the store does not answer.
  void announce(const Error& cause) const;
  /// Listens to the peers until the deadline. Throws when the store does not answer.
  [[nodiscard]] Error find_culprit(const Failure& failure, Clock::time_point deadline) const;
  /// Without the store.
  [[nodiscard]] Error guess(const Failure& failure) const;

 private:
  /// What the peers said by the deadline.
  struct Hearing {
    std::vector<int32_t> silent;  // global ranks
    std::string stopped;          // what is known of them
    std::string other;            // the first peer's that waits for something else
    bool deadline_passed = false;
    std::optional<Error> gave_up;
  };
  [[nodiscard]] Hearing listen(const Failure& failure, Clock::time_point deadline) const;
  [[nodiscard]] bool waits_for(const Failure& failure, int rank) const;

  const KeyValue kv_;
  const std::vector<Member> members_;
  const int rank_;
};

}  // namespace ciuic::plugins::gloo
