// SPDX-License-Identifier: MIT
//
// The data of a run as the trainer sees it: numbered samples for training, a fixed set of rows for
// validation.
//
// Thread rule: const after open, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/config/run_config.h"
#include "core/data/sample_order.h"
#include "core/data/text_stream.h"

namespace ciuic::core {

class Dataset {
 public:
  struct Options {
    TokenIds ids;
    uint64_t seed = 0;
    bool validates = true;             // RunConfig::validates(); false: nothing is held out
    int64_t validation_sequences = 0;  // at most so many rows
  };

  /// Throws: Failure (Usage): no file, not text, too short, a file in both sets, a tokenizer or
  /// kind of file that is not built yet.
  static Dataset open(const DataConfig& config, const Options& options);

  /// All tokens of data.train, held-out ones included.
  [[nodiscard]] int64_t num_tokens() const { return train_.num_tokens(); }
  [[nodiscard]] int64_t sequence_tokens() const { return sequence_tokens_; }
  [[nodiscard]] int64_t train_rows() const { return train_rows_; }
  [[nodiscard]] int64_t held_out_rows() const { return held_out_rows_; }

  /// Samples count without end.
  [[nodiscard]] int64_t row_of_sample(uint64_t sample) const { return order_.row(sample); }
  [[nodiscard]] uint64_t epoch_of_sample(uint64_t sample) const {
    return sample / static_cast<uint64_t>(train_rows_);
  }

  /// Tokens [offset, offset + length) of a training row, and the tokens that follow each.
  void fill(int64_t row, int64_t offset, int64_t length, int64_t* inputs, int64_t* targets) const;

  /// Always the same rows, in order; empty if the run does not validate. Their numbers are for
  /// fill_validation only.
  [[nodiscard]] std::span<const int64_t> validation_rows() const { return validation_rows_; }
  void fill_validation(int64_t row, int64_t offset, int64_t length, int64_t* inputs,
                       int64_t* targets) const;

 private:
  Dataset(TextStream train, std::optional<TextStream> validation, const DataConfig& config,
          const Options& options);

  void fill_from(const TextStream& stream, int64_t row, int64_t offset, int64_t length,
                 int64_t* inputs, int64_t* targets) const;

  TextStream train_;
  std::optional<TextStream> validation_;  // nothing: the rows after the training rows of train_
  int64_t sequence_tokens_;
  int64_t held_out_rows_;
  int64_t train_rows_;
  SampleOrder order_;
  std::vector<int64_t> validation_rows_;
};

}  // namespace ciuic::core
