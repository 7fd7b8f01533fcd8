// SPDX-License-Identifier: MIT
//
// A list of texts over a pipe between the runner's own processes: a count, then length and bytes of
// each.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ciuic::testing {

using Message = std::vector<std::string>;

/// False when the reader is gone.
bool write_message(int fd, const Message& message);

/// Waits until `deadline_ns` (CLOCK_MONOTONIC; < 0: for ever). Nothing: the writer is gone, or the
/// deadline has passed.
std::optional<Message> read_message(int fd, int64_t deadline_ns);

int64_t now_ns();

}  // namespace ciuic::testing
