// SPDX-License-Identifier: MIT
//
// A run's checkpoints: what is saved, when, which are kept, and where a run goes on.
//
// A checkpoint holds value/, master/ and moment/ tensors from the sharding plugin, the router
// biases, config.json and train.json. Saving is collective and ends alike on every rank.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/plugin/archive_opener.h"
#include "core/train/run_folder.h"
#include "core/train/session.h"
#include "core/train/train_state.h"

namespace ciuic::core {

class Checkpointing {
 public:
  Checkpointing(Session& session, const RunFolder& folder);

  /// Collective. Then points `latest` (and the tag) at it and removes what checkpoint.keep does not
  /// keep.
  void save(const TrainState& state, uint64_t epoch);

  /// Is a save due after this step? By steps and epochs alike on every rank; by time on rank 0,
  /// whose word counts.
  [[nodiscard]] bool is_due(const TrainState& before, const TrainState& after) const;

  /// Where to go on, by rank 0's look at the folder: the newest that verifies. Nothing: from the
  /// start.
  static std::optional<std::string> find_resume(const RunFolder& folder,
                                                const ArchiveOpener& opener, Log& log);

 private:
  [[nodiscard]] std::vector<ArchiveEntry> entries(const std::string& train_json,
                                                  const std::string& config_json) const;
  void put_all(const Archive& archive, const std::string& train_json,
               const std::string& config_json) const;
  void tidy(const std::string& newest, uint64_t epoch, uint64_t step) const;

  Session& session_;
  const RunFolder& folder_;
  std::chrono::steady_clock::time_point last_save_ = std::chrono::steady_clock::now();
};

/// Everything that moves a loss bit, as (key, text): settings of host and plugins, and what the data is.
TomlEntries numerics_of(const Session& session);

/// Fills the session's model and plugins: from a checkpoint (and returns its state), from
/// `model.from`, or from the seed.
TrainState load_training_state(Session& session, const std::optional<std::string>& checkpoint,
                               const ArchiveOpener& opener);

}  // namespace ciuic::core
