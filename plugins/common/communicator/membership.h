// SPDX-License-Identifier: MIT
//
// A group as one of its ranks sees it, how it comes from its parent, and how its ranks introduce
// themselves to each other through the kv service.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ciuic/abi/communicator.h>

#include "communicator/key_value.h"

namespace ciuic::plugins {

struct Membership {
  std::vector<int32_t> ranks;  // global, by group rank
  int rank = 0;                // in the group
  std::optional<KeyValue> kv;  // the group's own keys; none for a group of one
};

/// All ranks of a new instance. A second one in the same generation (a swap there and back) does not
/// read the first one's keys.
[[nodiscard]] Membership whole_world(const Host& host, int rank, int world);

/// The part of `parent` that a split asks for; `number` is the split's, equal on all ranks. `who` is
/// the plugin, for messages. Throws INVALID.
[[nodiscard]] Membership child_of(const Membership& parent, const ciuic_split& request,
                                  int64_t number, const std::string& who);

/// Tells the others `own` under a name, and returns what all said, by group rank. Throws DEADLINE
/// naming who is missing.
[[nodiscard]] std::vector<std::string> exchange(const Membership& group, const std::string& name,
                                                const std::string& own,
                                                std::chrono::nanoseconds timeout,
                                                const std::string& who);

}  // namespace ciuic::plugins
