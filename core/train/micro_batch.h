// SPDX-License-Identifier: MIT
//
// A scheduler's plan turned into the tensors of one rank.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/data/dataset.h"
#include "core/plugin/batch_scheduler.h"

namespace ciuic::core {

/// tokens, targets: int64 [rows, row_tokens]; a target that does not count is kIgnoredTarget.
/// Undefined: idle. document_starts: int32 of that shape, the place in its row where a token's
/// document begins, 0 for one that began before: a token's position is its place less that, and it
/// sees the keys from there on. Undefined for data.attention = "row". samples: of the rows.
struct MicroBatch {
  at::Tensor tokens;
  at::Tensor targets;
  at::Tensor document_starts;
  std::vector<uint64_t> samples;
  [[nodiscard]] bool is_idle() const { return !tokens.defined(); }
};

/// The plan's micro-batches of `rank`, in order, idle ones included.
std::vector<MicroBatch> load_micro_batches(const BatchPlan& plan, int rank, const Dataset& data);

/// The validation rows of `rank`: row j goes to rank j mod world, `rows` a micro-batch; every rank
/// gets as many slots.
std::vector<MicroBatch> load_validation(const Dataset& data, int rank, int world, int64_t rows);

}  // namespace ciuic::core
