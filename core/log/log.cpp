// SPDX-License-Identifier: MIT
#include "core/log/log.h"

#include <unistd.h>

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "core/log/failure.h"
#include "core/log/visible.h"

namespace ciuic::core {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::Trace:
      return spdlog::level::trace;
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warn:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
    case LogLevel::Off:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

}  // namespace

LogLevel parse_log_level(std::string_view name) {
  constexpr std::string_view kNames[] = {"trace", "debug", "info", "warn", "error", "off"};
  for (int i = 0; i < 6; ++i) {
    if (kNames[i] == name) {
      return static_cast<LogLevel>(i);
    }
  }
  throw Failure(ExitCode::Usage, "--log-level: got " + std::string(name) +
                                     ", expected trace, debug, info, warn, error or off");
}

struct Log::Sinks {
  spdlog::logger logger{"ciuic"};
  spdlog::sink_ptr terminal;
};

Log::Log(const Options& options) : sinks_(std::make_unique<Sinks>()) {
  if (options.color) {
    sinks_->terminal = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  } else {
    sinks_->terminal = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
  sinks_->terminal->set_level(to_spdlog(options.terminal));
  // A bar of progress may stand in the line (core/train/progress.h): the message takes its place.
  const bool may_meet_a_bar = isatty(STDERR_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  const std::string begin = std::string(may_meet_a_bar ? "\r\033[K" : "") + "%^%l%$: ";
  const std::string who = options.rank == 0 ? "" : "rank " + std::to_string(options.rank) + ": ";
  sinks_->terminal->set_pattern(begin + who + "%v");
  sinks_->logger.sinks().push_back(sinks_->terminal);
  sinks_->logger.set_level(spdlog::level::debug);
  sinks_->logger.flush_on(spdlog::level::warn);
  if (!options.file.empty()) {
    open_file(options.file);
  }
}

Log::~Log() { flush(); }

void Log::open_file(const std::string& path) {
  try {
    auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    file->set_level(spdlog::level::debug);
    file->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l: %v");
    sinks_->logger.sinks().push_back(std::move(file));
  } catch (const spdlog::spdlog_ex& e) {
    throw Failure(ExitCode::Storage, std::string("cannot write the log: ") + e.what(), "",
                  {{"file", path}});
  }
}

void Log::write(LogLevel level, std::string_view message) noexcept {
  const std::string shown = visible(message, Newlines::Kept);
  // spdlog reports its own failures (a full disk) on stderr and never throws from log().
  sinks_->logger.log(to_spdlog(level), spdlog::string_view_t(shown.data(), shown.size()));
}

bool Log::enabled(LogLevel level) const noexcept {
  return sinks_->logger.should_log(to_spdlog(level));
}

void Log::flush() noexcept { sinks_->logger.flush(); }

}  // namespace ciuic::core
