// SPDX-License-Identifier: MIT
#include "core/data/dataset.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include <xxhash.h>

#include <ciuic/error.hpp>

#include "core/data/find_files.h"
#include "core/data/held_out.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/log/failure.h"

namespace ciuic::core {
namespace {

using Files = std::vector<std::string>;

/// A file in both sets would be trained on and validated with; one in two sources would be drawn
/// more often than its weight says.
void check_apart(const Files& files, const std::string& key, const Files& others,
                 const std::string& other_key) {
  std::error_code error;
  std::set<std::filesystem::path> known;
  for (const std::string& file : others) {
    known.insert(std::filesystem::weakly_canonical(file, error));
  }
  for (const std::string& file : files) {
    if (known.count(std::filesystem::weakly_canonical(file, error)) > 0) {
      throw Failure(ExitCode::Usage, file + " is in " + key + " and in " + other_key,
                    "leave it out of one of them", {{"file", file}});
    }
  }
}

int64_t rows_or_throw(const TokenStream& stream, int64_t sequence_tokens, const std::string& key) {
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

int64_t train_rows_of(int64_t rows, int64_t held_out, const std::string& key) {
  if (rows == held_out) {
    throw Failure(ExitCode::Usage,
                  key + ": no row is left to train on: of " + std::to_string(rows) + ", " +
                      std::to_string(held_out) + " are held out for validation",
                  "give more text, a smaller data.sequence_tokens or data.validation_fraction, or "
                  "data.validation");
  }
  return rows - held_out;
}

void check_tokenizer(const Tokenizer& tokenizer, const TokenIds& ids) {
  const std::string who = "data.tokenizer: " + tokenizer.file();
  if (tokenizer.num_ids() > ids.vocab_size) {
    throw Failure(ExitCode::Usage,
                  who + " has ids up to " + std::to_string(tokenizer.num_ids() - 1) +
                      ", the model's vocab_size is " + std::to_string(ids.vocab_size),
                  "set model.vocab_size to " + std::to_string(tokenizer.num_ids()) + " or more");
  }
  if (ids.eos >= 0 && !tokenizer.is_special(ids.eos)) {
    const std::string_view bytes = tokenizer.bytes(ids.eos);
    throw Failure(ExitCode::Usage,
                  who + ": model.eos_token_id is " + std::to_string(ids.eos) + ", which is " +
                      (bytes.empty() ? "no token" : "no special token") + " there",
                  "set model.eos_token_id to that of its end of text");
  }
}

/// A source's seed follows from its name, not from its place among the others.
uint64_t seed_of(const std::string& name, uint64_t seed) {
  return seed ^ XXH64(name.data(), name.size(), 0);
}

}  // namespace

/// Opens files as the configuration's tokenizer has them.
class Dataset::Opener {
 public:
  Opener(const DataConfig& config, const Options& options) : options_(options) {
    if (config.tokenizer != "bytes") {
      tokenizer_.emplace(Tokenizer::open(config.tokenizer));
      check_tokenizer(*tokenizer_, options.ids);
    }
  }

  [[nodiscard]] TokenStream stream(const Files& files) const {
    std::vector<TokenFile> opened;
    opened.reserve(files.size());
    for (const std::string& file : files) {
      opened.push_back(open(file));
    }
    return TokenStream(std::move(opened), options_.ids);
  }

  [[nodiscard]] std::string sha256() const { return tokenizer_ ? tokenizer_->sha256() : ""; }

 private:
  [[nodiscard]] TokenFile open(const std::string& file) const {
    const FileKind kind = kind_of_file(file);
    if (kind == FileKind::Tokens) {
      return TokenFile::bin(file);
    }
    if (kind == FileKind::Text && !tokenizer_) {
      return TokenFile::text(file);
    }
    if (kind == FileKind::JsonLines &&
        (options_.ids.eos < 0 || options_.ids.eos >= options_.ids.vocab_size)) {
      throw Failure(ExitCode::Usage,
                    file +
                        ": an eos token ends each line's document; the model's eos_token_id is " +
                        (options_.ids.eos < 0 ? "not set" : "outside its vocabulary"),
                    "set model.eos_token_id", {{"file", file}});
    }
    return options_.cache.open(file, tokenizer_ ? &*tokenizer_ : nullptr, options_.ids.eos);
  }

  const Options& options_;
  std::optional<Tokenizer> tokenizer_;
};

TokenStream Dataset::open_files(const std::vector<std::string>& files, const DataConfig& config,
                                const Options& options) {
  return Opener(config, options).stream(files);
}

Dataset Dataset::open(const DataConfig& config, const Options& options) {
  Opener opener(config, options);
  return Dataset(config, options, opener);
}

Dataset::Dataset(const DataConfig& config, const Options& options, Opener& opener)
    : sequence_tokens_(config.sequence_tokens),
      has_document_starts_(config.is_document_attention()),
      tokenizer_sha256_(opener.sha256()) {
  std::vector<std::pair<std::string, Files>> sets;  // all are found before one is read
  if (config.sources.empty()) {
    sets.emplace_back("data.train", find_files(config.train, "data.train"));
  }
  for (const DataSource& source : config.sources) {
    const std::string key = "data.sources \"" + source.name + "\"";
    sets.emplace_back(key, find_files(source.files, key));
  }
  const bool has_own_validation = options.validates && !config.validation.empty();
  if (has_own_validation) {
    sets.emplace_back("data.validation", find_files(config.validation, "data.validation"));
  }
  for (size_t i = 1; i < sets.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      check_apart(sets[i].second, sets[i].first, sets[j].second, sets[j].first);
    }
  }
  const size_t num_sources = sets.size() - (has_own_validation ? 1 : 0);
  std::vector<SourceBlend::Source> shares;
  for (size_t i = 0; i < num_sources; ++i) {
    const auto& [key, files] = sets[i];
    const bool is_alone = config.sources.empty();
    add_source(opener.stream(files), key,
               is_alone ? options.seed : seed_of(config.sources[i].name, options.seed), config,
               options.validates && !has_own_validation);
    if (!is_alone) {
      const DataSource& source = config.sources[i];
      const auto rows = static_cast<double>(sources_.back().train_rows);
      shares.push_back({source.name, source.weight,
                        source.repeat ? std::max<int64_t>(1, static_cast<int64_t>(std::min(
                                                                 *source.repeat * rows, 9e18)))
                                      : -1});
    }
  }
  if (!shares.empty()) {
    blend_.emplace(shares);
  }
  if (has_own_validation) {
    validation_.emplace(opener.stream(sets.back().second));
  }
  choose_validation_rows(options);
}

void Dataset::add_source(TokenStream stream, const std::string& key, uint64_t seed,
                         const DataConfig& config, bool holds_out) {
  const int64_t rows = rows_or_throw(stream, sequence_tokens_, key);
  const int64_t held_out = holds_out ? core::held_out_rows(rows, config.validation_fraction) : 0;
  const int64_t train_rows = train_rows_of(rows, held_out, key);
  sources_.push_back({std::move(stream), rows, train_rows, train_rows_,
                      SampleOrder(train_rows, seed, config.is_shuffled())});
  train_rows_ += train_rows;
  held_out_rows_ += held_out;
}

/// Of rows of their own, or of all sources' held-out rows, numbered behind all training rows.
void Dataset::choose_validation_rows(const Options& options) {
  if (validation_) {
    const int64_t rows = rows_or_throw(*validation_, sequence_tokens_, "data.validation");
    validation_rows_ = spread_rows(0, rows, options.validation_sequences);
  } else {
    validation_rows_ = spread_rows(train_rows_, held_out_rows_, options.validation_sequences);
  }
}

int64_t Dataset::num_tokens() const {
  int64_t tokens = 0;
  for (const Source& source : sources_) {
    tokens += source.stream.num_tokens();
  }
  return tokens;
}

int64_t Dataset::row_of_sample(uint64_t sample) const {
  if (!blend_) {
    return sources_[0].order.row(sample);
  }
  const SourceBlend::Pick pick = blend_->pick(sample);
  const Source& source = sources_[pick.source];
  return source.first_row + source.order.row(pick.index);
}

void Dataset::fill(int64_t row, int64_t offset, int64_t length, int64_t* inputs, int64_t* targets,
                   int32_t* starts) const {
  if (row < 0 || row >= train_rows_) {
    throw Error(CIUIC_INTERNAL,
                "training row " + std::to_string(row) + " of " + std::to_string(train_rows_));
  }
  const auto behind =
      std::upper_bound(sources_.begin(), sources_.end(), row,
                       [](int64_t r, const Source& source) { return r < source.first_row; });
  const Source& source = *(behind - 1);
  fill_from(source.stream, row - source.first_row, offset, length, inputs, targets, starts);
}

void Dataset::fill_validation(int64_t row, int64_t offset, int64_t length, int64_t* inputs,
                              int64_t* targets, int32_t* starts) const {
  if (validation_) {
    return fill_from(*validation_, row, offset, length, inputs, targets, starts);
  }
  int64_t held_out = row - train_rows_;
  for (const Source& source : sources_) {
    const int64_t here = source.rows - source.train_rows;
    if (held_out >= 0 && held_out < here) {
      return fill_from(source.stream, source.train_rows + held_out, offset, length, inputs, targets,
                       starts);
    }
    held_out -= here;
  }
  throw Error(CIUIC_INTERNAL, "validation row " + std::to_string(row));
}

void Dataset::fill_from(const TokenStream& stream, int64_t row, int64_t offset, int64_t length,
                        int64_t* inputs, int64_t* targets, int32_t* starts) const {
  if (offset < 0 || length < 0 || length > sequence_tokens_ - offset) {
    throw Error(CIUIC_INTERNAL, "tokens [" + std::to_string(offset) + ", +" +
                                    std::to_string(length) + ") of a row of " +
                                    std::to_string(sequence_tokens_));
  }
  stream.piece(row * sequence_tokens_ + offset, length, inputs, targets, starts);
}

}  // namespace ciuic::core
