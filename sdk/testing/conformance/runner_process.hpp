// SPDX-License-Identifier: MIT
//
// Runs a function in a process of its own, with a time limit: it may crash, hang or call exit.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runner_message.hpp"

namespace ciuic::testing {

struct Ended {
  std::optional<Message> message;  // what the body returned; nothing: it did not get there
  bool timed_out = false;
  bool garbled = false;  // something else than the body's message came out of it
  int signal = 0;        // that ended the process; 0: none
  int exit_code = 0;     // if it called exit instead of returning
  std::string where;     // the last call into the plugin, if it crashed or hung and this is known
  std::string output;    // the end of what it wrote to stdout and stderr
  double seconds = 0;
};

/// The child leads a process group of its own, which is gone when this returns; its stdout and
/// stderr are kept.
Ended run_isolated(const std::function<Message()>& body, double limit_seconds);

/// "SIGSEGV" for 11.
std::string signal_name(int signal);

/// Why there is no message: "crashed in emit: SIGSEGV", "hangs in wait: ...".
std::string describe_end(const Ended& ended, double limit_seconds);

}  // namespace ciuic::testing
