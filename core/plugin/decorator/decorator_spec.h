// SPDX-License-Identifier: MIT
//
// Decorators as a run file asks for them: [communicator] decorate = [{ with = "chaos", ... }, ...],
// outermost first.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/config/node.h"
#include "core/config/problem.h"

namespace ciuic::core {

/// Faults on purpose. A fault is a function of the seed, the rank, the function and how often it
/// was called: the same run meets the same faults.
struct ChaosSpec {
  std::string function;         // "communicator.submit"; empty: every function
  std::optional<int64_t> rank;  // none: all ranks
  int64_t seed = 0;
  double probability = 1.0;     // of each call, where `call` is not given
  std::optional<int64_t> call;  // this call of the function, from 1
  std::chrono::nanoseconds delay{0};
  std::optional<int32_t> error;  // a status of this code instead of the call
  bool drops = false;            // the call does not take place, and nobody is told
  bool kills = false;            // SIGKILL of this rank
};

/// A log of calls.
struct RecordSpec {
  std::string path;                // empty: in the run's folder
  int64_t tensor_bytes = 1 << 16;  // larger tensors are hashed only
};

/// Another plugin beside the trusted one.
struct ShadowSpec {
  std::string candidate;
};

struct DecoratorSpec {
  std::variant<ChaosSpec, RecordSpec, ShadowSpec> what;
  Where where;
};

/// Reads the list of a kind's `decorate`; `path` names it in messages. Problems are appended.
std::vector<DecoratorSpec> read_decorators(const Node& list, uint32_t kind, std::string_view path,
                                           std::vector<Problem>& problems);

}  // namespace ciuic::core
