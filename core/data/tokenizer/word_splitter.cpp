// SPDX-License-Identifier: MIT
#include "core/data/tokenizer/word_splitter.h"

#include <algorithm>
#include <string>

namespace ciuic::core {
namespace {

/// GPT-2's, which ByteLevel brings along (encoder.py).
constexpr const char* kByteLevelPattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

}  // namespace

WordSplitter::WordSplitter(const TokenizerSpec& spec) {
  using Behavior = SplitSpec::Behavior;
  for (const SplitSpec& split : spec.splits) {
    steps_.push_back({split.is_regex ? Pattern::regex(split.pattern, split.key)
                                     : Pattern::literal(split.pattern, split.key),
                      split.behavior, split.is_inverted, false});
    can_restart_ = can_restart_ && split.behavior == Behavior::Isolated;
  }
  if (spec.has_byte_level_split) {
    steps_.push_back({Pattern::regex(kByteLevelPattern, "pre_tokenizer"), Behavior::Isolated, false,
                      spec.adds_prefix_space});
  } else {
    is_spaced_at_end_ = spec.adds_prefix_space;
  }
  can_restart_ = can_restart_ && !spec.adds_prefix_space &&
                 std::none_of(steps_.begin(), steps_.end(),
                              [](const Step& step) { return step.pattern.looks_behind(); });
}

size_t WordSplitter::split(std::string_view text, bool is_cut, const Sink& sink,
                           Scratch& scratch) const {
  return run(0, text, is_cut, sink, scratch);
}

size_t WordSplitter::run(size_t index, std::string_view text, bool is_cut, const Sink& sink,
                         Scratch& scratch) const {
  const bool is_last = index == steps_.size();
  if (text.empty() || (is_last && is_cut)) {
    return 0;
  }
  const bool is_spaced = is_last ? is_spaced_at_end_ : steps_[index].is_spaced;
  std::string spaced;
  std::string_view piece = text;
  if (is_spaced && text[0] != ' ') {
    spaced = " " + std::string(text);
    piece = spaced;
  }
  if (is_last) {
    sink(piece);
    return text.size();
  }
  const Step& step = steps_[index];
  if (step.behavior == SplitSpec::Behavior::Isolated) {
    const size_t done = isolate(index, piece, is_cut, sink, scratch);
    return is_cut ? done : text.size();
  }
  for (const Piece& p : pieces(step, piece, scratch)) {
    run(index + 1, piece.substr(p.begin, p.end - p.begin), false, sink, scratch);
  }
  return text.size();
}

size_t WordSplitter::isolate(size_t index, std::string_view text, bool is_cut, const Sink& sink,
                             Scratch& scratch) const {
  const Pattern& pattern = steps_[index].pattern;
  size_t done = 0;
  while (done < text.size()) {
    Pattern::Range match;
    const Pattern::Found found = pattern.find(text, done, is_cut, match, scratch);
    if (found != Pattern::Found::Match) {
      // What is in front of a match that the rest decides may be longer than it looks, too.
      const size_t end = found == Pattern::Found::Cut ? match.begin : text.size();
      return done + run(index + 1, text.substr(done, end - done), is_cut, sink, scratch);
    }
    run(index + 1, text.substr(done, match.begin - done), false, sink, scratch);
    run(index + 1, text.substr(match.begin, match.end - match.begin), false, sink, scratch);
    done = match.end;
  }
  return done;
}

std::vector<WordSplitter::Piece> WordSplitter::pieces(const Step& step, std::string_view text,
                                                      Scratch& scratch) const {
  using Behavior = SplitSpec::Behavior;
  std::vector<Piece> found;
  const auto add = [&](size_t begin, size_t end, bool is_match) {
    if (begin < end) {
      found.push_back({begin, end, is_match != step.is_inverted});
    }
  };
  size_t done = 0;
  Pattern::Range match;
  while (done < text.size() &&
         step.pattern.find(text, done, false, match, scratch) == Pattern::Found::Match) {
    add(done, match.begin, false);
    add(match.begin, match.end, true);
    done = match.end;
  }
  add(done, text.size(), false);
  if (step.behavior == Behavior::Removed) {
    std::erase_if(found, [](const Piece& p) { return p.is_match; });
    return found;
  }
  const bool is_backward = step.behavior == Behavior::MergedWithNext;
  if (is_backward) {
    std::reverse(found.begin(), found.end());
  }
  std::vector<Piece> merged;
  bool was_match = false;
  for (const Piece& p : found) {
    const bool joins =
        step.behavior == Behavior::Contiguous ? p.is_match == was_match : p.is_match && !was_match;
    was_match = p.is_match;
    if (!joins || merged.empty()) {
      merged.push_back(p);
    } else if (is_backward) {
      merged.back().begin = p.begin;
    } else {
      merged.back().end = p.end;
    }
  }
  if (is_backward) {
    std::reverse(merged.begin(), merged.end());
  }
  return merged;
}

}  // namespace ciuic::core
