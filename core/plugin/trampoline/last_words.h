// SPDX-License-Identifier: MIT
//
// Where a rank that is about to die says why: one line in its log file, and on stderr; under our
// launcher in its pipe instead, and the launcher makes it the run's last line on stderr. Everything
// here but the setters is async-signal-safe: fixed buffers, open, write.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/plugin/trampoline/breadcrumb.h"

namespace ciuic::core {

/// Which rank speaks, and the launcher's pipe (-1: none). From the control thread.
void set_last_words(int rank, int report_fd);
/// The file that the line is appended to.
void set_last_words_log(const char* path);

/// What a rank writes into the launcher's pipe before it ends on its own account, and a plugin that
/// ends the process does not: NUL, "done ", the exit code.
inline constexpr char kDoneMark[] = "done ";
void say_done(int exit_code) noexcept;

/// A line in a fixed buffer. What does not fit is cut.
class WordLine {
 public:
  WordLine& operator<<(const char* text) noexcept;
  WordLine& operator<<(int64_t number) noexcept;

  [[nodiscard]] const char* data() const noexcept { return text_; }
  [[nodiscard]] size_t size() const noexcept { return size_; }

 private:
  char text_[1024];
  size_t size_ = 0;
};

/// "plugin gloo 1.2.0 <verb> communicator.submit, call 81023".
void say_crumb(WordLine& line, const Crumb& crumb, const char* verb) noexcept;
/// " rank=3 host=node7".
void say_place(WordLine& line) noexcept;
/// Writes the line there.
void write_last_words(const WordLine& line) noexcept;

}  // namespace ciuic::core
