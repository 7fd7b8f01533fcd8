// SPDX-License-Identifier: MIT
//
// A regular expression of a tokenizer.json, which is written for Oniguruma, run by PCRE2. Only what
// means the same in both is taken; `\s` and `\p{Script}` are rewritten to what Oniguruma means by
// them. The only place that knows PCRE2. Unicode 14, as Debian 12's PCRE2 has it.
//
// Thread rule: find() is const; each thread brings its own Scratch.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace ciuic::core {

class Pattern {
 public:
  /// A thread's own memory for matching; belongs to no pattern.
  class Scratch {
   public:
    Scratch();
    ~Scratch();
    Scratch(Scratch&&) noexcept;
    Scratch& operator=(Scratch&&) noexcept;

   private:
    friend class Pattern;
    struct Data;
    std::unique_ptr<Data> data_;
  };

  enum class Found { Match, None, Cut };
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };

  /// Throws Failure (Usage), whose text begins with `key`, for what is not supported.
  static Pattern regex(std::string_view text, const std::string& key);
  static Pattern literal(std::string_view text, const std::string& key);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  /// The first match in valid UTF-8 at or after `from`. `is_cut`: the text goes on where `subject`
  /// ends; then Cut is a match that the rest would decide, and `out.begin` where it starts.
  /// Throws: Failure (Usage) when a match takes too much memory.
  Found find(std::string_view subject, size_t from, bool is_cut, Range& out,
             Scratch& scratch) const;

  /// Whether matches after a point depend on what stands before it.
  [[nodiscard]] bool looks_behind() const;

 private:
  struct Code;
  explicit Pattern(std::unique_ptr<Code> code);
  static Pattern compile(const std::string& text, unsigned options, const std::string& key);

  std::unique_ptr<Code> code_;
};

/// The same expression in PCRE2's words. Throws Failure (Usage), beginning with `key`.
std::string to_pcre2(std::string_view oniguruma, const std::string& key);

}  // namespace ciuic::core
