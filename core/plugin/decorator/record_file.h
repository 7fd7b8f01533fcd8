// SPDX-License-Identifier: MIT
//
// The file of one `record`: one write a record, at once, so that what a killed rank did is there.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "core/log/log.h"
#include "core/plugin/decorator/call_log.h"
#include "core/plugin/open_file.h"

namespace ciuic::core {

/// Why a record must not be written there: something that is no call log would be lost. Empty: it may.
std::string record_obstacle(const std::string& path);

/// Thread rule: any thread.
class RecordFile {
 public:
  /// Replaces an earlier log, and nothing else; one that is still written is left alone. Throws
  /// Failure (Storage).
  RecordFile(const std::string& path, const LogValue& header, Log& log);
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  /// The call's number.
  uint64_t enter(uint32_t instance, const char* function, LogValue in);
  void leave(uint64_t number, LogValue out);
  void done(uint64_t number, LogValue out);
  /// The number of a further instance in this file.
  uint32_t new_instance() noexcept { return instances_.fetch_add(1) + 1; }

 private:
  void write(const LogRecord& record);

  std::string path_;
  Log& log_;
  std::mutex mutex_;
  OpenFile file_;  // nothing once a write has failed
  uint64_t calls_ = 0;
  std::atomic<uint32_t> instances_{0};
};

}  // namespace ciuic::core
