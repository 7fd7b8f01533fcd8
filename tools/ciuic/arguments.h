// SPDX-License-Identifier: MIT
//
// Command lines: what all commands share. The only folder that knows Boost.Program_options.
#pragma once

#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "core/log/failure.h"
#include "core/log/log.h"

namespace ciuic::tools {

using Arguments = std::vector<std::string>;

/// A command's line: options, positional names and the help page. Parse problems are Failure
/// (Usage).
class CommandLine {
 public:
  /// `usage` is the first line of the help, `examples` its end.
  CommandLine(std::string name, std::string usage, std::string about, std::string examples);

  [[nodiscard]] boost::program_options::options_description& options() { return visible_; }
  /// Options that --help does not show.
  [[nodiscard]] boost::program_options::options_description& hidden() { return hidden_; }
  void positional(const std::string& name, int count);

  /// Nothing when --help was asked for and shown.
  std::optional<boost::program_options::variables_map> parse(const Arguments& arguments);

  /// A Failure (Usage) that points at this command's help.
  [[nodiscard]] core::Failure usage_failure(const std::string& what) const;

 private:
  std::string name_;
  std::string usage_;
  std::string about_;
  std::string examples_;
  boost::program_options::options_description visible_;
  boost::program_options::options_description hidden_;
  boost::program_options::positional_options_description positional_;
};

/// --threads, and what it says: the usable cores by default. Throws Failure (Usage).
void add_threads_option(CommandLine& line);
int threads_of(const CommandLine& line, const boost::program_options::variables_map& values);

/// --quiet, --verbose, --log-level.
void add_log_options(CommandLine& line);
core::LogLevel terminal_level(const boost::program_options::variables_map& values);
/// May output to this stream be coloured? A terminal, and no NO_COLOR.
bool has_color(int fd);

/// Options of `train` that the launcher and the worker read alike.
void add_train_options(CommandLine& line);

std::string get(const boost::program_options::variables_map& values, const std::string& name);
std::vector<std::string> get_all(const boost::program_options::variables_map& values,
                                 const std::string& name);

/// The folders that an option names. Throws Failure (Usage) for one that is not there: what a person
/// types is looked at, unlike what a file lists for many machines.
std::vector<std::string> folders_of(const boost::program_options::variables_map& values,
                                    const std::string& name);

/// Runs a command: a Failure becomes its last line (by `show`) and its exit code; what nobody
/// foresaw is code 70. Success whose output cannot be written is a Failure (Storage).
int run_command(const std::function<int()>& command,
                const std::function<void(const std::string&)>& show);

}  // namespace ciuic::tools
