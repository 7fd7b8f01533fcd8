// SPDX-License-Identifier: MIT
//
// The host's side of ciuic-probe: one child process maps libraries, shows their descriptors and runs
// their validate(). What it says is not trusted: sizes are bounded, every value is checked, and a
// process that crashes, hangs or babbles is blamed on the file and step that it had announced; the
// other files get a fresh process.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/plugin_options.h"
#include "core/plugin/descriptor_info.h"

namespace ciuic::core {

struct Placement;

/// Why a file cannot be used: the step of the pipeline, what is wrong, and what to do.
struct Refusal {
  std::string step;  // resolve, trust, hash, quarantine, note, stage, load, query,
                     // descriptor, unload, validate
  std::string reason;
  std::string remedy;

  /// "load: libfoo.so.1: cannot open ...".
  [[nodiscard]] std::string text() const { return step + ": " + reason; }
};

struct ProbeRequest {
  std::string path;  // staged
  // A validate request has these too:
  uint32_t kind = 0;
  std::string name;
  nlohmann::json arguments;  // options and placement, see validate_arguments()
  std::string sha256 = {};   // for the mark, and where the original lies
  std::string original = {};
};

struct ProbeAnswer {
  std::vector<std::shared_ptr<const DescriptorInfo>> plugins;
  bool stays_resident = true;
  std::vector<std::string> warnings;
  std::string validated;  // what validate() refuses; empty: nothing
  std::optional<Refusal> refusal;
  bool has_crashed = false;  // or hung, or said nonsense: the file is to blame, not what it needs
  bool has_hung = false;     // of these: it ran out of time
};

class Probe {
 public:
  /// `executable` is ciuic-probe; `patience` is how long one step of one file may take.
  /// `mark`: where the process notes what it looks at (probe_mark.h); empty: nowhere.
  Probe(std::string executable, std::chrono::milliseconds patience, std::string mark = "")
      : executable_(std::move(executable)), patience_(patience), mark_(std::move(mark)) {}

  /// ciuic-probe beside this executable, in ../bin or in ../libexec/ciuic. Throws Failure
  /// (Environment) when it is not there.
  static std::string find_executable();

  /// One answer for each request, in order. Throws Failure (Environment) when no process can be
  /// started, (Stopped) when an interrupt waits that is held back (probe_mark.h).
  [[nodiscard]] std::vector<ProbeAnswer> look(const std::vector<ProbeRequest>& files) const;
  [[nodiscard]] std::vector<ProbeAnswer> validate(const std::vector<ProbeRequest>& requests) const;

 private:
  [[nodiscard]] std::vector<ProbeAnswer> ask(const std::vector<ProbeRequest>& requests,
                                             const char* list) const;

  std::string executable_;
  std::chrono::milliseconds patience_;
  std::string mark_;
};

/// What validate() is called with, as the probe reads it.
nlohmann::json validate_arguments(const PluginOptions& options, const Placement& placement);

}  // namespace ciuic::core
