// SPDX-License-Identifier: MIT
//
// Text to tokens and back, for generation: by the model's tokenizer.json, or a token is a byte.
//
// Thread rule: const after construction, any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/token_ids.h"

namespace ciuic::core {

class TextCodec {
 public:
  virtual ~TextCodec() = default;

  [[nodiscard]] virtual std::vector<int64_t> encode(std::string_view text) const = 0;
  /// The bytes that a token adds to a text, maybe a part of a character; none for a special token.
  [[nodiscard]] virtual std::string decode(int64_t token) const = 0;
  /// What may be generated: tokens of text, and eos.
  [[nodiscard]] virtual std::vector<int64_t> candidates() const = 0;
  /// What a context without text begins with.
  [[nodiscard]] virtual int64_t first_token() const = 0;
  /// Ends a text; -1: the model has no such token.
  [[nodiscard]] virtual int64_t eos() const = 0;
};

/// The codec of a model with these tokens. `source` names the model in messages; `tokenizer` is its
/// tokenizer.json, nothing: bytes.
/// Throws: Failure (Usage) for a vocabulary that is too small, or a tokenizer that cannot be read.
std::unique_ptr<TextCodec> text_codec(const TokenIds& ids, const std::string& source,
                                      const std::optional<std::string>& tokenizer = std::nullopt);

}  // namespace ciuic::core
