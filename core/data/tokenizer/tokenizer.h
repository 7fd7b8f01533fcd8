// SPDX-License-Identifier: MIT
//
// A byte-level BPE tokenizer from a tokenizer.json: text to tokens and back, exactly, for any valid
// UTF-8 (unless the file itself takes text away: a Removed split, an added token that strips).
// Tokens are those of the tokenizers library without what its post-processor would add.
//
// Thread rule: Tokenizer is const; each thread has its own Encoder.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/tokenizer/added_tokens.h"
#include "core/data/tokenizer/byte_pairs.h"
#include "core/data/tokenizer/word_splitter.h"

namespace ciuic::core {

class Tokenizer {
 public:
  /// `path`: a tokenizer.json, or a folder with one. Throws Failure (Usage) with the key of what is
  /// wrong or not supported.
  static Tokenizer open(const std::string& path);
  static Tokenizer parse(std::string_view json, const std::string& name);

  /// One more than the largest id.
  [[nodiscard]] int64_t num_ids() const { return static_cast<int64_t>(spec_.tokens.size()); }
  /// Of an added token, by its text.
  [[nodiscard]] std::optional<int32_t> id_of(std::string_view added_token) const;
  [[nodiscard]] bool is_special(int64_t id) const;
  /// The token's bytes; "" for an id that is none.
  [[nodiscard]] std::string_view bytes(int64_t id) const;
  [[nodiscard]] std::string decode(std::span<const int32_t> tokens) const;

  /// The file's path and its SHA-256, by which tokens are known.
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& sha256() const { return sha256_; }

  /// Whether a text may be encoded in chunks that begin where words begin.
  [[nodiscard]] bool can_restart() const;

 private:
  friend class Encoder;
  explicit Tokenizer(TokenizerSpec spec, std::string file, std::string sha256);

  TokenizerSpec spec_;
  AddedTokens added_;
  WordSplitter splitter_;
  BytePairs pairs_;
  std::unordered_map<std::string_view, int32_t> words_;  // only for ignore_merges
  std::string file_;
  std::string sha256_;
};

/// The path of a tokenizer.json that `path` names: the file itself, or the one in that folder.
std::string tokenizer_file(const std::string& path);

class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);

  /// Appends the tokens of `text`, which is valid UTF-8.
  void encode(std::string_view text, std::vector<int32_t>& out);

  /// Appends the tokens of the words that begin in [begin, end) of `text`, where a word begins at
  /// `begin`. Returns where the last of them ends: `end` itself if a word ends there. Only for a
  /// tokenizer that can_restart().
  size_t encode_chunk(std::string_view text, size_t begin, size_t end, std::vector<int32_t>& out);

 private:
  /// Tokens of words met before, the last of each place. A key is the word padded with zeros.
  struct Known {
    static constexpr size_t kLongest = 24;
    static constexpr size_t kMostTokens = 8;
    std::array<uint64_t, 3> key{};
    std::array<int32_t, kMostTokens> tokens{};
    uint8_t length = 0;
    uint8_t count = 0;
  };

  size_t encode_window(std::string_view window, size_t offset, size_t end, bool is_cut,
                       std::vector<int32_t>& out);
  void encode_word(std::string_view word, std::vector<int32_t>& out);
  void encode_new_word(std::string_view word, std::vector<int32_t>& out);

  const Tokenizer& tokenizer_;
  WordSplitter::Scratch splitting_;
  BytePairs::Scratch pairing_;
  std::vector<AddedTokens::Part> parts_;
  std::vector<Known> known_;
};

}  // namespace ciuic::core
