// SPDX-License-Identifier: MIT
//
// The tokens of a text or .jsonl, made once and kept in a file that is mapped from then on. A file's
// name holds a hash of what it was made from (content, tokenizer, eos), so it is never stale and any
// run may use it; it appears under its name when it is whole. Of several processes that want it one
// makes it, the others wait for that.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/data/token_file.h"
#include "core/data/tokenize_file.h"

namespace ciuic::core {

struct TokenCache {
  std::string folder;  // made when it is needed
  int threads = 1;
  /// Gets a line now and then while tokens are made or waited for.
  std::function<void(const std::string&)> note = [](const std::string&) {};

  /// The tokens of `file`. Throws Failure: Usage for what is wrong with the text, with file and
  /// line; Storage when the cache cannot be written, or when who makes it stands still.
  [[nodiscard]] TokenFile open(const std::string& file, const Tokenizer* tokenizer,
                               int64_t eos) const;
};

}  // namespace ciuic::core
