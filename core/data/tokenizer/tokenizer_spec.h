// SPDX-License-Identifier: MIT
//
// What a tokenizer.json (Hugging Face) says, for a byte-level BPE as DeepSeek's. Anything else in
// the file is refused with the key it stands at: a tokenizer that is nearly right gives tokens that
// are quietly wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ciuic::core {

/// A step of the pre-tokenizer: cuts a piece of text where a pattern matches.
struct SplitSpec {
  enum class Behavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

  std::string pattern;
  bool is_regex = true;
  Behavior behavior = Behavior::Isolated;
  bool is_inverted = false;
  std::string key;  // where it stands, for messages
};

struct AddedTokenSpec {
  std::string content;
  int32_t id = 0;
  bool is_special = false;
  bool is_single_word = false;
  bool strips_left = false;
  bool strips_right = false;
  bool is_normalized = false;  // looked for after those that are not
};

struct MergeSpec {
  int32_t left = 0;
  int32_t right = 0;
  int32_t merged = 0;
};

struct TokenizerSpec {
  std::vector<SplitSpec> splits;      // in order, before ByteLevel
  bool adds_prefix_space = false;     // ByteLevel: in front of every piece that has none
  bool has_byte_level_split = false;  // ByteLevel's own pattern
  std::vector<AddedTokenSpec> added;
  std::vector<std::string> tokens;  // bytes by id; empty: no token of the model has that id
  std::vector<int32_t> byte_ids;    // of the 256 bytes
  std::vector<MergeSpec> merges;    // by rank
  bool takes_whole_words = false;   // ignore_merges
};

/// `name` is the file's, for messages. Throws Failure (Usage).
TokenizerSpec parse_tokenizer(std::string_view json, const std::string& name);

}  // namespace ciuic::core
