// SPDX-License-Identifier: MIT
//
// The order in which a step visits the model's units, as sharding is told beforehand: what it
// gathers ahead, and when it may give up. passes.h walks it; the binder holds every bind against it.
#pragma once

#include <cstdint>
#include <vector>

#include <ciuic/abi/sharding.h>

#include "core/model/model.h"

namespace ciuic::core {

/// CIUIC_USE_IDLE for a rank without data, but where its experts work for others.
uint32_t idle_flag(const Model& model, int64_t unit, bool is_idle);

/// The binds of a training step. One entry of `is_idle` for each of its micro-batches.
std::vector<ciuic_use> training_walk(const Model& model, const std::vector<bool>& is_idle);

/// The binds of an evaluation; layers for multi-token prediction are left out.
std::vector<ciuic_use> evaluation_walk(const Model& model, const std::vector<bool>& is_idle);

}  // namespace ciuic::core
