// SPDX-License-Identifier: MIT
//
// How the host ends a command that cannot go on: one exception type that knows the documented exit
// code and the one line that a person reads last (docs: "Exit codes").
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ciuic::core {

enum class ExitCode : int {
  Done = 0,
  Usage = 2,          // usage, configuration, data missing or too small
  Plugin = 3,         // not found, refused, failed to start or at fault
  Environment = 4,    // environment, rendezvous or device
  Communication = 5,  // peer lost, timeout, mismatch
  Storage = 6,        // unreadable, full, or of another model
  Numbers = 7,        // non-finite
  OutOfMemory = 8,
  Internal = 70,  // our bug
  Stopped = 75,   // on request, with a checkpoint: start again to go on
};

/// What went wrong, where, and what to do about it.
class Failure : public std::runtime_error {
 public:
  using Fields =
      std::vector<std::pair<std::string, std::string>>;  // rank=, host=, step=, op=, file=, errno=

  Failure(ExitCode code, const std::string& what, std::string remedy = "", Fields fields = {})
      : std::runtime_error(what),
        code_(code),
        remedy_(std::move(remedy)),
        fields_(std::move(fields)) {}

  [[nodiscard]] ExitCode code() const noexcept { return code_; }
  [[nodiscard]] const std::string& remedy() const noexcept { return remedy_; }
  [[nodiscard]] const Fields& fields() const noexcept { return fields_; }
  /// Lines to show before the last one: a list of problems, of paths tried.
  [[nodiscard]] const std::vector<std::string>& details() const noexcept { return details_; }
  Failure& detail(std::string line) {
    details_.push_back(std::move(line));
    return *this;
  }
  void set_remedy(std::string remedy) { remedy_ = std::move(remedy); }
  Failure& with(std::string key, std::string value) {
    for (const auto& [known, unused] : fields_) {
      if (known == key) {
        return *this;
      }
    }
    fields_.emplace_back(std::move(key), std::move(value));
    return *this;
  }

 private:
  ExitCode code_;
  std::string remedy_;
  Fields fields_;
  std::vector<std::string> details_;
};

/// Any exception as the Failure that it stands for: out of memory, or a bug of ours.
Failure to_failure(const std::exception& exception);

/// The details, one a line, and then the last line: `ciuic: error: <what>: rank=... step=...;
/// <remedy>`. Control characters in any of them are shown, not sent to the terminal (visible.h).
std::string format(const Failure& failure);

}  // namespace ciuic::core
