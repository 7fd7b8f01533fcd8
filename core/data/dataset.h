// SPDX-License-Identifier: MIT
//
// The data of a run as the trainer sees it: numbered samples for training, a fixed set of rows for
// validation. Rows of several sources are numbered one source after the other.
//
// Thread rule: const after open, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config/run_config.h"
#include "core/data/sample_order.h"
#include "core/data/source_blend.h"
#include "core/data/token_cache.h"
#include "core/data/token_ids.h"
#include "core/data/token_stream.h"

namespace ciuic::core {

class Dataset {
 public:
  struct Options {
    TokenIds ids;
    uint64_t seed = 0;
    bool validates = true;             // RunConfig::validates(); false: nothing is held out
    int64_t validation_sequences = 0;  // at most so many rows
    TokenCache cache{};                // for what is tokenized first
  };

  /// Throws: Failure (Usage): no file, not text, too short, a file in both sets, a tokenizer or
  /// tokens that do not fit the model; (Storage): the cache cannot be written.
  static Dataset open(const DataConfig& config, const Options& options);
  /// These files alone, as one stream by the configuration's tokenizer.
  static TokenStream open_files(const std::vector<std::string>& files, const DataConfig& config,
                                const Options& options);

  /// All tokens of data.train or data.sources, held-out ones included.
  [[nodiscard]] int64_t num_tokens() const;
  [[nodiscard]] int64_t sequence_tokens() const { return sequence_tokens_; }
  [[nodiscard]] int64_t train_rows() const { return train_rows_; }
  [[nodiscard]] int64_t held_out_rows() const { return held_out_rows_; }
  /// The SHA-256 of the tokenizer's file; "" for bytes.
  [[nodiscard]] const std::string& tokenizer_sha256() const { return tokenizer_sha256_; }
  /// Whether attention stays inside documents, so that their starts are wanted.
  [[nodiscard]] bool has_document_starts() const { return has_document_starts_; }

  /// Samples count without end, unless every source has a limit.
  [[nodiscard]] int64_t row_of_sample(uint64_t sample) const;
  [[nodiscard]] uint64_t epoch_of_sample(uint64_t sample) const {
    return sample / static_cast<uint64_t>(train_rows_);
  }

  /// Tokens [offset, offset + length) of a training row, and the tokens that follow each; kNoTarget
  /// where none is trained on. `starts`, wanted only if has_document_starts(): for each token where
  /// in these its document begins, 0 for one that began before. Then no target is another document's.
  void fill(int64_t row, int64_t offset, int64_t length, int64_t* inputs, int64_t* targets,
            int32_t* starts = nullptr) const;

  /// Always the same rows, in order; empty if the run does not validate. Their numbers are for
  /// fill_validation only.
  [[nodiscard]] std::span<const int64_t> validation_rows() const { return validation_rows_; }
  void fill_validation(int64_t row, int64_t offset, int64_t length, int64_t* inputs,
                       int64_t* targets, int32_t* starts = nullptr) const;

 private:
  struct Source {
    TokenStream stream;
    int64_t rows;  // held-out ones included: they come last
    int64_t train_rows;
    int64_t first_row;  // of training, in the numbering of all sources
    SampleOrder order;
  };
  class Opener;

  Dataset(const DataConfig& config, const Options& options, Opener& opener);
  void add_source(TokenStream stream, const std::string& key, uint64_t seed,
                  const DataConfig& config, bool holds_out);
  void choose_validation_rows(const Options& options);

  void fill_from(const TokenStream& stream, int64_t row, int64_t offset, int64_t length,
                 int64_t* inputs, int64_t* targets, int32_t* starts) const;

  int64_t sequence_tokens_;
  bool has_document_starts_;
  std::string tokenizer_sha256_;
  std::vector<Source> sources_;
  std::optional<SourceBlend> blend_;       // of several sources
  std::optional<TokenStream> validation_;  // nothing: the held-out rows of the sources
  int64_t train_rows_ = 0;
  int64_t held_out_rows_ = 0;
  std::vector<int64_t> validation_rows_;
};

}  // namespace ciuic::core
