// SPDX-License-Identifier: MIT
//
// What a plugin reads in state_load, kept for a call log, and given back in a replay. Blobs only:
// tensors of a state are a checkpoint's, and too large for a log.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ciuic/abi/host.h>
#include <ciuic/abi/state.h>

#include "core/plugin/decorator/call_log.h"

namespace ciuic::core {

/// Looks on while a plugin reads.
class RecordedState {
 public:
  explicit RecordedState(const ciuic_reader& inner);
  RecordedState(const RecordedState&) = delete;
  RecordedState& operator=(const RecordedState&) = delete;

  [[nodiscard]] const ciuic_reader& reader() const noexcept { return reader_; }
  [[nodiscard]] LogValue value() const;

 private:
  static ciuic_status* list(void*, ciuic_array*);
  static ciuic_status* blob(void*, ciuic_str key, const void**, size_t*);
  static ciuic_status* tensor(void*, ciuic_str key, const ciuic_place*, const ciuic_tensor*,
                              const ciuic_stream*, ciuic_work**);

  const ciuic_reader& inner_;
  ciuic_reader reader_;
  std::map<std::string, std::string> blobs_;
  bool has_tensors_ = false;
};

/// Gives back what was kept.
class ReplayedState {
 public:
  /// Throws LogMismatch, or LogIncomplete where the state had tensors.
  ReplayedState(const LogValue& value, const ciuic_host* host);
  ReplayedState(const ReplayedState&) = delete;
  ReplayedState& operator=(const ReplayedState&) = delete;

  [[nodiscard]] const ciuic_reader& reader() const noexcept { return reader_; }

 private:
  const ciuic_host* host_;
  std::string plugin_;
  ciuic_reader reader_{};
  std::map<std::string, std::string> blobs_;
  std::vector<ciuic_entry> entries_;
};

}  // namespace ciuic::core
