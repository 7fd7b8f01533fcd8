// SPDX-License-Identifier: MIT
#include "core/data/dataset.h"

#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include <ciuic/error.hpp>

#include "core/data/held_out.h"
#include "core/log/failure.h"

namespace ciuic::core {
namespace {

void check_tokenizer(const DataConfig& config) {
  if (config.tokenizer != "bytes") {
    throw Failure(ExitCode::Usage, "data.tokenizer: \"" + config.tokenizer +
                                       "\" is not built yet; only \"bytes\" is");
  }
}

/// A file in both sets would be trained on and validated with.
void check_apart(const std::vector<std::string>& train,
                 const std::vector<std::string>& validation) {
  std::error_code error;
  std::set<std::filesystem::path> trained;
  for (const std::string& file : train) {
    trained.insert(std::filesystem::weakly_canonical(file, error));
  }
  for (const std::string& file : validation) {
    if (trained.count(std::filesystem::weakly_canonical(file, error)) > 0) {
      throw Failure(ExitCode::Usage, file + " is in data.validation and in data.train",
                    "leave it out of one of them", {{"file", file}});
    }
  }
}

int64_t rows_or_throw(const TextStream& stream, int64_t sequence_tokens, const std::string& key) {
  const int64_t rows = stream.rows(sequence_tokens);
  if (rows == 0) {
    throw Failure(ExitCode::Usage,
                  key + ": text shorter than one sequence: got " +
                      std::to_string(stream.num_tokens()) + " tokens, expected at least " +
                      std::to_string(sequence_tokens + 1) +
                      " (data.sequence_tokens and the token after them)",
                  "give more text or a smaller data.sequence_tokens");
  }
  return rows;
}

int64_t train_rows_of(int64_t rows, int64_t held_out) {
  if (rows == held_out) {
    throw Failure(ExitCode::Usage,
                  "data.train: no row is left to train on: of " + std::to_string(rows) + ", " +
                      std::to_string(held_out) + " are held out for validation",
                  "give more text, a smaller data.sequence_tokens or data.validation_fraction, or "
                  "data.validation");
  }
  return rows - held_out;
}

}  // namespace

Dataset Dataset::open(const DataConfig& config, const Options& options) {
  check_tokenizer(config);
  const std::vector<std::string> train = find_files(config.train, "data.train");
  std::optional<TextStream> validation;
  if (options.validates && !config.validation.empty()) {
    const std::vector<std::string> files = find_files(config.validation, "data.validation");
    check_apart(train, files);
    validation.emplace(files, options.ids);
  }
  return Dataset(TextStream(train, options.ids), std::move(validation), config, options);
}

Dataset::Dataset(TextStream train, std::optional<TextStream> validation, const DataConfig& config,
                 const Options& options)
    : train_(std::move(train)),
      validation_(std::move(validation)),
      sequence_tokens_(config.sequence_tokens),
      held_out_rows_(
          options.validates && !validation_
              ? core::held_out_rows(rows_or_throw(train_, sequence_tokens_, "data.train"),
                                    config.validation_fraction)
              : 0),
      train_rows_(
          train_rows_of(rows_or_throw(train_, sequence_tokens_, "data.train"), held_out_rows_)),
      order_(train_rows_, options.seed, config.is_shuffled()) {
  if (validation_) {
    const int64_t rows = rows_or_throw(*validation_, sequence_tokens_, "data.validation");
    validation_rows_ = spread_rows(0, rows, options.validation_sequences);
  } else {
    validation_rows_ = spread_rows(train_rows_, held_out_rows_, options.validation_sequences);
  }
}

void Dataset::fill(int64_t row, int64_t offset, int64_t length, int64_t* inputs,
                   int64_t* targets) const {
  if (row < 0 || row >= train_rows_) {
    throw Error(CIUIC_INTERNAL,
                "training row " + std::to_string(row) + " of " + std::to_string(train_rows_));
  }
  fill_from(train_, row, offset, length, inputs, targets);
}

void Dataset::fill_validation(int64_t row, int64_t offset, int64_t length, int64_t* inputs,
                              int64_t* targets) const {
  fill_from(validation_ ? *validation_ : train_, row, offset, length, inputs, targets);
}

void Dataset::fill_from(const TextStream& stream, int64_t row, int64_t offset, int64_t length,
                        int64_t* inputs, int64_t* targets) const {
  if (offset < 0 || length < 0 || length > sequence_tokens_ - offset) {
    throw Error(CIUIC_INTERNAL, "tokens [" + std::to_string(offset) + ", +" +
                                    std::to_string(length) + ") of a row of " +
                                    std::to_string(sequence_tokens_));
  }
  const int64_t begin = row * sequence_tokens_ + offset;
  stream.tokens(begin, length, inputs);
  stream.tokens(begin + 1, length, targets);
}

}  // namespace ciuic::core
