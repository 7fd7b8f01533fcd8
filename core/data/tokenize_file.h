// SPDX-License-Identifier: MIT
//
// Text and .jsonl turned into tokens by all cores, in the order of the file: the same tokens
// whatever the number of threads. Memory is a few chunks a thread, whatever the file's size (one
// line of a .jsonl, and a text whose tokenizer cannot begin in the middle, are in one chunk).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/data/token_ids.h"
#include "core/data/tokenizer/tokenizer.h"

namespace ciuic::core {

struct TokenizeRequest {
  std::string file;                      // for messages; its ending says what it is
  const Tokenizer* tokenizer = nullptr;  // nothing: a token is a byte
  int64_t eos = -1;
  bool appends_eos = false;  // to each document that does not end in one, and to a text
  bool allows_masks = true;  // questions, as ~id; else such a line is refused
  int threads = 1;
};

/// Called in the order of the file, by one thread.
struct TokenSink {
  std::function<void(std::span<const int32_t> tokens)> tokens;  // ~id: not a target
  std::function<void()> end_of_document;
  std::function<void(int64_t bytes)> progress;  // bytes of the file that are done
};

/// `bytes`: the file's content. Throws Failure (Usage) with file and line.
void tokenize_file(const TokenizeRequest& request, std::string_view bytes, const TokenSink& sink);

}  // namespace ciuic::core
