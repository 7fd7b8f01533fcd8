// SPDX-License-Identifier: MIT
//
// A collective, or the messages of one submit, ready to run.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "process_group.h"

namespace ciuic::plugins::gloo {

struct Operation {
  std::string what;  // for messages
  std::chrono::nanoseconds timeout{};
  /// Group ranks that it waits for; empty: all.
  std::vector<int> partners;
  /// The call of the process group; empty when there is nothing to exchange. It owns the memory
  /// that Gloo works in.
  std::function<void(ProcessGroup&, Milliseconds timeout, Done)> run;
  /// Local work afterwards, which does not fail; may be empty.
  std::function<void()> finish;
};

}  // namespace ciuic::plugins::gloo
