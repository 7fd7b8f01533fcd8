// SPDX-License-Identifier: MIT
//
// The pre-tokenizer: cuts a text into words, each of which is encoded on its own. Every step sees
// the pieces of the one before as texts of their own, as the tokenizers library does it.
//
// A text may be cut anywhere: `is_cut` says that it goes on, and then only words that the rest
// cannot change are given. Where a word ends, splitting can begin again and gives the same words
// (`can_restart`): so a long text is split in windows, and by many threads.
//
// Thread rule: const; each thread brings its own Scratch.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/data/tokenizer/pattern.h"
#include "core/data/tokenizer/tokenizer_spec.h"

namespace ciuic::core {

class WordSplitter {
 public:
  using Scratch = Pattern::Scratch;
  /// Gets each word, in order. A word lives as long as the call.
  using Sink = std::function<void(std::string_view word)>;

  explicit WordSplitter(const TokenizerSpec& spec);

  /// Bytes of `text` that were given as words: all of them unless `is_cut`.
  size_t split(std::string_view text, bool is_cut, const Sink& sink, Scratch& scratch) const;

  [[nodiscard]] bool can_restart() const { return can_restart_; }

 private:
  struct Step {
    Pattern pattern;
    SplitSpec::Behavior behavior;
    bool is_inverted;
    bool is_spaced;  // a prefix space comes before this step
  };
  struct Piece {
    size_t begin = 0;
    size_t end = 0;
    bool is_match = false;
  };

  size_t run(size_t step, std::string_view text, bool is_cut, const Sink& sink,
             Scratch& scratch) const;
  size_t isolate(size_t step, std::string_view text, bool is_cut, const Sink& sink,
                 Scratch& scratch) const;
  [[nodiscard]] std::vector<Piece> pieces(const Step& step, std::string_view text,
                                          Scratch& scratch) const;

  std::vector<Step> steps_;
  bool is_spaced_at_end_ = false;
  bool can_restart_ = true;
};

}  // namespace ciuic::core
