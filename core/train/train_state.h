// SPDX-License-Identifier: MIT
//
// Everything that moves a loss bit and is not a tensor: the trainer's own part of a checkpoint
// ("train.json").
#pragma once

#include <cstdint>
#include <string>

#include "core/config/config_text.h"

namespace ciuic::core {

struct TrainState {
  uint64_t step = 0;           // steps done, skipped ones included
  uint64_t updates = 0;        // updates applied: what schedules and bias correction count
  uint64_t update_tokens = 0;  // that went into those updates
  uint64_t tokens = 0;
  uint64_t samples = 0;
  uint64_t skipped_steps = 0;
  TomlEntries numerics;  // settings that move a loss bit, as they were

  [[nodiscard]] std::string to_json() const;
  /// Throws Failure (Storage) for what is no train.json of version 1.
  static TrainState from_json(const std::string& text, const std::string& file);
};

/// Settings that differ, each "key: was x, is y"; empty when nothing does.
std::string changed_settings(const TomlEntries& was, const TomlEntries& is);

}  // namespace ciuic::core
