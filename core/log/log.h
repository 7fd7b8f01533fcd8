// SPDX-License-Identifier: MIT
//
// Rank-aware logs. Rank 0 shows info and above on the terminal (stderr), every other rank warnings
// and above; each rank also writes everything from debug up to its own file. The only folder that
// knows spdlog.
//
// Thread rule: log() may be called from any thread after start().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ciuic::core {

enum class LogLevel : int { Trace = 0, Debug = 1, Info = 2, Warn = 3, Error = 4, Off = 5 };

/// "debug" and so on; throws Failure (Usage) for an unknown name.
LogLevel parse_log_level(std::string_view name);

class Log {
 public:
  struct Options {
    int rank = 0;
    int world = 1;
    LogLevel terminal = LogLevel::Info;
    std::string file;  // empty: none
    bool color = false;
  };

  explicit Log(const Options& options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// Starts the per-rank file (log/rank-N.log), appending.
  void open_file(const std::string& path);

  void write(LogLevel level, std::string_view message) noexcept;
  void debug(std::string_view m) noexcept { write(LogLevel::Debug, m); }
  void info(std::string_view m) noexcept { write(LogLevel::Info, m); }
  void warn(std::string_view m) noexcept { write(LogLevel::Warn, m); }
  void error(std::string_view m) noexcept { write(LogLevel::Error, m); }
  [[nodiscard]] bool enabled(LogLevel level) const noexcept;
  void flush() noexcept;

 private:
  struct Sinks;
  std::unique_ptr<Sinks> sinks_;
};

}  // namespace ciuic::core
