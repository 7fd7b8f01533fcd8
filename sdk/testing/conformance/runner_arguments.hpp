// SPDX-License-Identifier: MIT
//
// The command line of ciuic-check, parsed by hand: the kit has no dependencies.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ciuic::testing {

/// What was typed cannot be done: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Format { Text, Markdown };

struct Arguments {
  std::string path;
  std::string plugin;              // empty: every plugin of the library
  int level = 3;                   // tests up to this one
  std::vector<std::string> tests;  // ids, of any level, or patterns with *
  std::vector<std::pair<std::string, std::string>> settings;
  uint64_t seed = 20260101;
  double patience = 1;
  double soak_seconds = 60;
  std::string junit;
  std::string expect_failure;
  Format format = Format::Text;
  bool json = false;
  bool list = false;
  bool help = false;
};

/// Throws UsageError.
Arguments parse_arguments(int argc, const char* const* argv);

const char* usage();

}  // namespace ciuic::testing
