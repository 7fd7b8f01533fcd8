// SPDX-License-Identifier: MIT
#include "core/train/micro_batch.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "core/log/failure.h"
#include "core/model/head.h"

namespace ciuic::core {
namespace {

static_assert(kNoTarget == kIgnoredTarget);

MicroBatch padded(int64_t rows, int64_t row_tokens, bool has_document_starts) {
  MicroBatch batch;
  batch.samples.resize(static_cast<size_t>(rows));
  batch.tokens = at::full({rows, row_tokens}, 0, at::kLong);
  batch.targets = at::full({rows, row_tokens}, kIgnoredTarget, at::kLong);
  if (has_document_starts) {
    batch.document_starts = at::full({rows, row_tokens}, 0, at::kInt);
  }
  return batch;
}

/// Of the token at `at` and behind; nullptr where they are not wanted.
int32_t* starts_at(const MicroBatch& batch, int64_t at) {
  return batch.document_starts.defined() ? batch.document_starts.mutable_data_ptr<int32_t>() + at
                                         : nullptr;
}

void fill_item(const ciuic_batch_item& item, const Dataset& data, int64_t row_tokens,
               MicroBatch& batch) {
  if (item.position != 0 || item.length > row_tokens) {
    throw Failure(ExitCode::Plugin,
                  "the batch scheduler packs several samples into a row, which is not built yet",
                  "choose a scheduler that gives each sample a row");
  }
  batch.samples[item.row] = item.sample;
  const int64_t at = int64_t{item.row} * row_tokens;
  data.fill(data.row_of_sample(item.sample), static_cast<int64_t>(item.offset), item.length,
            batch.tokens.mutable_data_ptr<int64_t>() + at,
            batch.targets.mutable_data_ptr<int64_t>() + at, starts_at(batch, at));
}

}  // namespace

std::vector<MicroBatch> load_micro_batches(const BatchPlan& plan, int rank, const Dataset& data) {
  std::vector<MicroBatch> batches(plan.micro_batches);
  std::vector<int64_t> rows(plan.micro_batches, 0);
  for (const ciuic_batch_item& item : plan.items) {
    if (static_cast<int>(item.rank) == rank && item.micro_batch < plan.micro_batches) {
      rows[item.micro_batch] = std::max(rows[item.micro_batch], int64_t{item.row} + 1);
    }
  }
  for (size_t m = 0; m < batches.size(); ++m) {
    if (rows[m] > 0) {
      batches[m] = padded(rows[m], plan.row_tokens, data.has_document_starts());
    }
  }
  for (const ciuic_batch_item& item : plan.items) {
    if (static_cast<int>(item.rank) == rank && item.micro_batch < plan.micro_batches) {
      fill_item(item, data, plan.row_tokens, batches[item.micro_batch]);
    }
  }
  return batches;
}

std::vector<MicroBatch> load_validation(const Dataset& data, int rank, int world, int64_t rows) {
  const std::span<const int64_t> all = data.validation_rows();
  const auto total = static_cast<int64_t>(all.size());
  const int64_t row_tokens = data.sequence_tokens();
  const int64_t per_rank = (total + world - 1) / world;
  std::vector<MicroBatch> batches;
  for (int64_t first = 0; first < per_rank; first += rows) {
    std::vector<int64_t> mine;
    for (int64_t i = first; i < std::min(first + rows, per_rank); ++i) {
      if (const int64_t j = i * world + rank; j < total) {
        mine.push_back(all[static_cast<size_t>(j)]);
      }
    }
    MicroBatch batch;
    if (!mine.empty()) {
      batch = padded(static_cast<int64_t>(mine.size()), row_tokens, data.has_document_starts());
      for (size_t r = 0; r < mine.size(); ++r) {
        const int64_t at = static_cast<int64_t>(r) * row_tokens;
        data.fill_validation(mine[r], 0, row_tokens, batch.tokens.mutable_data_ptr<int64_t>() + at,
                             batch.targets.mutable_data_ptr<int64_t>() + at, starts_at(batch, at));
      }
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace ciuic::core
