// SPDX-License-Identifier: MIT
//
// Files as one stream of tokens: in sorted order, one `eos` between two unless the first already
// ends in one. Rows are cut from the stream: with s tokens a row, row i has the inputs
// [i s, (i + 1) s) and as targets the same shifted by one, so an unfinished last row is left out.
//
// A document begins where a file begins, behind each eos, and where a file's own index says so.
//
// Thread rule: const after construction, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/token_file.h"
#include "core/data/token_ids.h"

namespace ciuic::core {

/// A target that does not count: as kIgnoredTarget of core/model/head.h.
inline constexpr int64_t kNoTarget = -100;

class TokenStream {
 public:
  /// Throws: Failure (Usage) if the ids of the model do not fit the files.
  TokenStream(std::vector<TokenFile> files, TokenIds ids);

  [[nodiscard]] int64_t num_tokens() const { return num_tokens_; }
  /// Complete rows of s tokens: (num_tokens - 1) / s.
  [[nodiscard]] int64_t rows(int64_t sequence_tokens) const {
    return num_tokens_ == 0 ? 0 : (num_tokens_ - 1) / sequence_tokens;
  }

  /// Tokens [begin, begin + count), and what follows each as its target; kNoTarget where none is
  /// trained on. With `starts`: for each token the place in this piece where its document begins
  /// (0 for one that began before), and no target is in another document. Throws: Error (INTERNAL)
  /// outside the stream; Failure (Usage) for an id that the model does not have.
  void piece(int64_t begin, int64_t count, int64_t* inputs, int64_t* targets,
             int32_t* starts) const;

 private:
  [[nodiscard]] size_t file_of(int64_t token) const;
  void raw(int64_t begin, int64_t count, int64_t* out) const;
  void check(const TokenFile& file, int64_t first, int64_t count, const int64_t* tokens) const;
  [[nodiscard]] int64_t next_document(int64_t token) const;
  [[nodiscard]] bool ends_in_eos(const TokenFile& file) const;

  std::vector<TokenFile> files_;
  std::vector<int64_t> begins_;  // first token of each file
  TokenIds ids_;
  int64_t num_tokens_ = 0;
};

}  // namespace ciuic::core
