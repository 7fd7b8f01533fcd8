// SPDX-License-Identifier: MIT
//
// Text files as one stream of tokens: files in sorted order, one `eos` between two. The files are
// mapped, not read; a token is a byte. Rows are cut from the stream: with s tokens a row, row i has
// the inputs [i s, (i + 1) s) and as targets the same shifted by one, so an unfinished last row is
// left out.
//
// Thread rule: const after construction, any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ciuic::core {

/// What the tokenizer needs to know of the model. -1: the model has none.
struct TokenIds {
  int64_t vocab_size = 259;
  int64_t bos = 256;
  int64_t eos = 257;
  int64_t pad = 258;
};

/// The files that `patterns` (paths and globs) name, sorted by path, each once. `key`
/// ("data.train") names the setting. Throws: Failure (Usage) if a pattern matches nothing, or names
/// a folder or a kind of file that can't be read yet.
std::vector<std::string> find_files(const std::vector<std::string>& patterns,
                                    const std::string& key);

class TextStream {
 public:
  /// Throws: Failure (Usage) if a file can't be read, is empty or is not UTF-8: with its name, byte
  /// offset and line.
  TextStream(std::vector<std::string> files, TokenIds ids);
  ~TextStream();
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;

  [[nodiscard]] int64_t num_tokens() const { return num_tokens_; }
  /// Complete rows of s tokens: (num_tokens - 1) / s.
  [[nodiscard]] int64_t rows(int64_t sequence_tokens) const {
    return num_tokens_ == 0 ? 0 : (num_tokens_ - 1) / sequence_tokens;
  }
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }

  /// Tokens [begin, begin + count). Throws: Error (INTERNAL) outside the stream.
  void tokens(int64_t begin, int64_t count, int64_t* out) const;
  void tokens(int64_t begin, int64_t count, int32_t* out) const;

 private:
  class Mapping;

  template <typename T>
  void copy(int64_t begin, int64_t count, T* out) const;

  std::vector<std::string> files_;
  std::vector<Mapping> mappings_;
  std::vector<int64_t> begins_;  // first token of each file
  int64_t eos_;
  int64_t num_tokens_ = 0;
};

}  // namespace ciuic::core
