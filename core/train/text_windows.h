// SPDX-License-Identifier: MIT
//
// How a long text is cut for its perplexity: windows of at most `sequence` inputs, each `stride`
// further on. Each token but the first is the target of exactly one window, the first that reaches
// it; so with stride < sequence every target but the first ones has at least sequence - stride
// tokens before it.
#pragma once

#include <cstdint>

namespace ciuic::core {

/// Inputs [begin, begin + length); the target of each is the token after it, and those of the first
/// `seen` were another window's.
struct TextWindow {
  int64_t begin = 0, length = 0, seen = 0;
};

class TextWindows final {
 public:
  /// tokens >= 2, sequence >= 1, 1 <= stride <= sequence.
  TextWindows(int64_t tokens, int64_t sequence, int64_t stride)
      : targets_(tokens - 1), sequence_(sequence), stride_(stride) {}

  [[nodiscard]] int64_t count() const;
  [[nodiscard]] TextWindow at(int64_t index) const;

 private:
  int64_t targets_, sequence_, stride_;
};

}  // namespace ciuic::core
