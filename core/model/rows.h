// SPDX-License-Identifier: MIT
#pragma once

// How the rows of a micro-batch are read: each as one sequence, or as documents one after another.
//
// In a row of documents, positions count from the document's first token and attention stays
// inside a document, so that a packed row gives what its documents would give in rows of their
// own. Source: DeepSeek-V3, arXiv:2412.19437, section 4.1, packs documents (and attends across
// them).

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace ciuic::core {

struct Rows {
  /// Tokens [begin, begin + length) of a row, which see each other and nothing else.
  struct Span {
    int64_t row, begin, length;
  };

  int64_t count = 0;   // B
  int64_t tokens = 0;  // T, of each
  std::vector<Span> spans;
  /// int32 [B * T], on the CPU. Undefined: each row is one span, positions are those in the row.
  at::Tensor positions_N;
  /// The sample that each row holds, for what is drawn for it at random. Empty: not known.
  std::vector<uint64_t> samples;

  [[nodiscard]] int64_t size() const { return count * tokens; }
  [[nodiscard]] bool are_whole() const { return !positions_N.defined(); }
  /// Positions that the longest span needs.
  [[nodiscard]] int64_t num_positions() const;
};

Rows whole_rows(int64_t count, int64_t tokens);

/// starts: int32 [B, T] on the CPU; for each token the index in its row of its document's first
/// token. Throws: Error (INTERNAL) for starts that no rows of documents have.
Rows document_rows(const at::Tensor& starts_BT);

}  // namespace ciuic::core
