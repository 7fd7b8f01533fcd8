// SPDX-License-Identifier: MIT
//
// Libraries that crashed or hung while they were looked at, by the SHA-256 of their content. An
// entry says why, and ends by itself: a rebuilt plugin has another hash, and one that crashed for
// lack of a driver gets another try tomorrow.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ciuic::core {

struct QuarantineEntry {
  std::string file;    // where it lay; information only
  std::string reason;  // "probe: signal 6 (Aborted) in load"
  int64_t since = 0;   // seconds since 1970
  int64_t until = 0;

  [[nodiscard]] bool holds(int64_t now) const { return now < until; }
};

class Quarantine {
 public:
  static constexpr std::chrono::hours kDefaultTime{24};

  /// `folder` is private already. Nothing is read yet.
  explicit Quarantine(const std::string& folder)
      : file_(folder + "/quarantine.json"), guard_(folder + "/quarantine.guard") {}

  /// Entries that hold now, by hash. A damaged file counts as empty: it must not stop every run.
  [[nodiscard]] std::map<std::string, QuarantineEntry> entries() const;
  [[nodiscard]] std::optional<QuarantineEntry> find(const std::string& sha256) const;

  /// Throws Failure (Environment) when the file cannot be written.
  void add(const std::string& sha256, const std::string& file, const std::string& reason,
           std::chrono::seconds time = kDefaultTime) const;
  /// Hashes that begin with `prefix` (at least 6 digits). How many were there.
  size_t remove(std::string_view prefix) const;
  void clear() const;

  [[nodiscard]] const std::string& path() const { return file_; }

 private:
  void write(const std::map<std::string, QuarantineEntry>& entries) const;

  std::string file_;
  std::string guard_;
};

int64_t seconds_since_1970();
/// "2026-01-31 12:00 UTC".
std::string time_text(int64_t seconds);

}  // namespace ciuic::core
