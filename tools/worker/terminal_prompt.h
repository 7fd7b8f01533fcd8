// SPDX-License-Identifier: MIT
//
// A person at a terminal: lines of input, and Ctrl-C as a request that is looked at instead of the
// program's end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ciuic::tools {

/// SIGINT while one of these lives. One at a time.
class InterruptRequest final {
 public:
  InterruptRequest();
  ~InterruptRequest();
  InterruptRequest(const InterruptRequest&) = delete;
  InterruptRequest& operator=(const InterruptRequest&) = delete;

  /// Has Ctrl-C been pressed since the last `clear`?
  [[nodiscard]] static bool is_raised();
  static void clear();
};

/// Shows `prompt` on stderr and reads a line from stdin, without its newline. Nothing: the end of
/// input (Ctrl-D). Ctrl-C drops what was typed and asks again.
std::optional<std::string> read_line(const std::string& prompt);

/// All of stdin, to its end. Throws: Failure (Storage); (Usage) for more than `most` bytes.
std::string read_stdin(size_t most);

/// To stdout at once. Throws: Failure (Storage).
void write_stdout(std::string_view text);

}  // namespace ciuic::tools
