// SPDX-License-Identifier: MIT
//
// What a conformance test is. A test is a row of a table: an id that never changes, a level, a
// kind, what it proves, and a function that throws when the plugin under test does not hold. The
// runner gives each test a process of its own with a time limit, so a test may crash or hang.
//
//   const TestCase kTests[] = {
//       {"profiler.emit.never_blocks", 3, CIUIC_KIND_PROFILER, 20, "emit returns at once", emit_never_blocks},
//   };
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include <ciuic/testing/loaded_plugin.hpp>

namespace ciuic::testing {

/// The plugin does not hold what the contract says. Message: what was done, got, expected.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The test does not apply: the plugin says by its capabilities, features or flags that it does not
/// offer this.
class NotOffered : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a test gets. The plugin is mapped already; nothing of it has been created.
struct TestContext {
  const std::string& path;  // the library under test
  const LoadedPlugin& plugin;
  const OptionValues& options;  // what the person set with --set; defaults for the rest
  uint64_t seed;                // all randomness of a test comes from it
  const std::string& scratch;   // an empty folder of the test's own, removed afterwards
  double patience;              // multiply time limits by it: > 1 under sanitizers
  double soak_seconds = 60;     // how long a soak test goes on

  /// An instance with the person's options, and a test's own on top.
  [[nodiscard]] PluginInstance create(const TestHost& host, OptionValues own = {},
                                      Seat seat = {}) const {
    own.insert(options.begin(), options.end());
    return plugin.create(host, std::move(own), seat);
  }
};

struct TestCase {
  const char* id;              // "communicator.all_reduce.sum": <kind or "any">.<subject>.<fact>
  int level;                   // 0 static, 1 load, 2 contract, 3 kind, 4 swap and soak
  uint32_t kind;               // CIUIC_KIND_; 0: every kind
  int32_t time_limit_seconds;  // generous; a test that runs into it fails with "hangs"
  const char* proves;          // one line for the table in the docs
  void (*run)(const TestContext&);
};

/// Fails the test unless `holds`.
inline void require(bool holds, const std::string& otherwise) {
  if (!holds) {
    throw CheckFailed(otherwise);
  }
}

/// The same for checks of many thousand numbers: the text is made on failure only.
template <typename Text, typename = decltype(std::declval<const Text&>()())>
void require(bool holds, const Text& otherwise) {
  if (!holds) {
    throw CheckFailed(otherwise());
  }
}

}  // namespace ciuic::testing
