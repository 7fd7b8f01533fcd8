// SPDX-License-Identifier: MIT
//
// A decorator of the io service: writes down every call, and fails the k-th one, alone or with all
// that follow.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <ciuic/abi/host.h>
#include <ciuic/abi/services.h>

namespace ciuic::test {

/// Shared by the ranks of a test. Any thread.
class FaultPlan final {
 public:
  /// A failing call, counted from 1 over all ranks. is_final: all later ones fail too, as after a
  /// kill.
  void fail_at(int64_t call, int32_t code, bool is_final);
  void fail_nothing() { fail_at(0, 0, false); }
  /// Reported as free, instead of the truth.
  void set_space(uint64_t bytes) { space_ = bytes; }

  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] std::vector<std::string> log() const;
  void clear_log();
  /// What a power cut does to data that was not synced: it becomes zeros.
  void zero_unsynced_files() const;

 private:
  friend class FaultyIo;
  /// What was not synced under the old name is not under the new one.
  void follow_rename(const std::string& from, const std::string& to);
  /// The code to fail with, or nothing.
  std::optional<int32_t> next(const std::string& op, const std::string& path);

  mutable std::mutex mutex_;
  std::vector<std::string> log_;
  std::set<std::string> unsynced_;
  int64_t calls_ = 0, fail_at_ = 0;
  int32_t code_ = 0;
  bool is_final_ = false, has_failed_ = false;
  std::optional<uint64_t> space_;
};

/// One rank's table.
class FaultyIo final {
 public:
  FaultyIo(const ciuic_host* host, const ciuic_io_service& real, FaultPlan& plan);
  [[nodiscard]] const ciuic_io_service& table() const noexcept { return table_; }

 private:
  struct Calls;
  ciuic_status* gate(const std::string& op, const std::string& path) const;

  const ciuic_host* host_;
  const ciuic_io_service& real_;
  FaultPlan& plan_;
  std::map<ciuic_file*, std::string> paths_;
  ciuic_io_service table_{};
};

}  // namespace ciuic::test
