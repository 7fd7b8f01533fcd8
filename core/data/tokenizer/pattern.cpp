// SPDX-License-Identifier: MIT
#include "core/data/tokenizer/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

constexpr size_t kFirstStackBytes = size_t{32} << 10;
constexpr size_t kLargestStackBytes = size_t{64} << 20;
constexpr uint32_t kInterpreterHeapKib = 1u << 20;

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string message_of(int error) {
  char text[256] = {};
  pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof(text));
  return text;
}

}  // namespace

struct Pattern::Scratch::Data {
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kFirstStackBytes, kLargestStackBytes, nullptr);

  Data() {
    if (match == nullptr || context == nullptr || stack == nullptr) {
      throw std::bad_alloc();
    }
    pcre2_jit_stack_assign(context, nullptr, stack);
    pcre2_set_heap_limit(context, kInterpreterHeapKib);
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  ~Data() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
  }
};

Pattern::Scratch::Scratch() : data_(std::make_unique<Data>()) {}
Pattern::Scratch::~Scratch() = default;
Pattern::Scratch::Scratch(Scratch&&) noexcept = default;
Pattern::Scratch& Pattern::Scratch::operator=(Scratch&&) noexcept = default;

struct Pattern::Code {
  pcre2_code* code = nullptr;
  bool has_jit = false;

  explicit Code(pcre2_code* made) : code(made) {
    has_jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) == 0;
  }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
};

Pattern::Pattern(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Pattern Pattern::regex(std::string_view text, const std::string& key) {
  return compile(to_pcre2(text, key), PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, key);
}

Pattern Pattern::literal(std::string_view text, const std::string& key) {
  return compile(std::string(text), PCRE2_LITERAL, key);
}

Pattern Pattern::compile(const std::string& text, unsigned options, const std::string& key) {
  int error = 0;
  size_t at = 0;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 50);
  pcre2_code* made =
      pcre2_compile(units(text), text.size(), PCRE2_UTF | options, &error, &at, context.get());
  if (made == nullptr) {
    throw Failure(ExitCode::Usage, key + ": no regular expression: " + message_of(error) +
                                       " at byte " + std::to_string(at));
  }
  auto code = std::make_unique<Code>(made);
  uint32_t may_be_empty = 0;
  pcre2_pattern_info(made, PCRE2_INFO_MATCHEMPTY, &may_be_empty);
  if (may_be_empty != 0) {
    throw Failure(ExitCode::Usage, key + ": it matches the empty text, which is not supported");
  }
  return Pattern(std::move(code));
}

Pattern::Found Pattern::find(std::string_view subject, size_t from, bool is_cut, Range& out,
                             Scratch& scratch) const {
  Scratch::Data& data = *scratch.data_;
  const uint32_t partial = is_cut ? PCRE2_PARTIAL_HARD : 0;
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (code_->has_jit) {
    found = pcre2_jit_match(code_->code, units(subject), subject.size(), from, partial, data.match,
                            data.context);
  }
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
    found = pcre2_match(code_->code, units(subject), subject.size(), from,
                        partial | PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.match, data.context);
  }
  const size_t* const place = pcre2_get_ovector_pointer(data.match);
  if (found == PCRE2_ERROR_NOMATCH) {
    return Found::None;
  }
  if (found == PCRE2_ERROR_PARTIAL) {
    out = {place[0], subject.size()};
    return Found::Cut;
  }
  if (found < 0) {
    throw Failure(ExitCode::Usage,
                  "a regular expression of the tokenizer fails: " + message_of(found));
  }
  out = {place[0], place[1]};
  return Found::Match;
}

bool Pattern::looks_behind() const {
  uint32_t characters = 0;
  pcre2_pattern_info(code_->code, PCRE2_INFO_MAXLOOKBEHIND, &characters);
  return characters > 0;
}

}  // namespace ciuic::core
