// SPDX-License-Identifier: MIT
//
// A line of a .jsonl as a document. One of three forms, other keys are left alone:
//   {"text": "..."}                            all of it is trained on
//   {"prompt": "...", "completion": "..."}     only the completion
//   {"messages": [{"role", "content"}, ...]}   only what the assistant says, in DeepSeek-V3's form
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ciuic::core {

struct DocumentPart {
  enum class Kind { Text, Bos, Eos, User, Assistant };
  Kind kind = Kind::Text;
  std::string text;
  bool is_target = true;
};

/// The parts of a line's document, in order; none for a line without text. An eos at its end is not
/// among them, except in a conversation. Throws Failure (Usage), whose text begins with `where`.
std::vector<DocumentPart> parse_document(std::string_view line, const std::string& where);

}  // namespace ciuic::core
