// SPDX-License-Identifier: MIT
//
// A list of texts over a pipe between the runner's own processes: a mark, a count, then length and
// bytes of each. The plugin under test lives in one of them and can write into any file descriptor:
// what is no message of ours is told apart from one that did not come.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ciuic::testing {

using Message = std::vector<std::string>;

/// False when the reader is gone.
bool write_message(int fd, const Message& message);

enum class Arrival {
  Complete,
  Nothing,  // the writer is gone, or the deadline has passed
  Garbled   // somebody else wrote into the pipe; what follows cannot be read either
};

/// Waits until `deadline_ns` (CLOCK_MONOTONIC; < 0: for ever).
Arrival read_message(int fd, int64_t deadline_ns, Message& out);

/// What a garbled pipe says about the plugin.
inline constexpr const char* kGarbled =
    "wrote into a file descriptor that is not its own: one of the kit's pipes";

/// The whole text as a number; nothing: it is none.
std::optional<uint64_t> whole_number(const std::string& text);

int64_t now_ns();

}  // namespace ciuic::testing
