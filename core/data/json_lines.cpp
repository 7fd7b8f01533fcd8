// SPDX-License-Identifier: MIT
#include "core/data/json_lines.h"

#include <nlohmann/json.hpp>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

using Json = nlohmann::json;
using Kind = DocumentPart::Kind;

class Line {
 public:
  Line(std::string_view line, const std::string& where) : where_(where) {
    try {
      json_ = Json::parse(line);
    } catch (const Json::parse_error& e) {
      refuse("no JSON at byte " + std::to_string(e.byte) + " of the line");
    }
    if (!json_.is_object()) {
      refuse("expected an object");
    }
  }

  std::vector<DocumentPart> parts() {
    const bool is_text = json_.contains("text");
    const bool is_answer = json_.contains("prompt") || json_.contains("completion");
    const bool is_talk = json_.contains("messages");
    if (is_text + is_answer + is_talk != 1) {
      refuse("expected one of \"text\", \"prompt\" with \"completion\", or \"messages\"");
    }
    if (is_text) {
      add(Kind::Text, text(json_, "text"), true);
    } else if (is_answer) {
      add(Kind::Text, text(json_, "prompt"), false);
      add(Kind::Text, text(json_, "completion"), true);
    } else {
      talk(json_["messages"]);
    }
    return std::move(parts_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Failure(ExitCode::Usage, where_ + ": " + what);
  }

  [[nodiscard]] const std::string& text(const Json& object, const char* key) const {
    const auto at = object.find(key);
    if (at == object.end() || !at->is_string()) {
      refuse("expected a string as \"" + std::string(key) + "\"");
    }
    return at->get_ref<const std::string&>();
  }

  void add(Kind kind, const std::string& text, bool is_target) {
    if (kind != Kind::Text || !text.empty()) {
      parts_.push_back({kind, text, is_target});
    }
  }

  /// bos, system, then <User>question and <Assistant>answer<eos> as often as they come: the template
  /// in DeepSeek-V3's tokenizer_config.json, without its tool calls.
  void talk(const Json& messages) {
    if (!messages.is_array() || messages.empty()) {
      refuse("expected a list of messages as \"messages\"");
    }
    add(Kind::Bos, "", false);
    bool has_answer = false;
    for (size_t i = 0; i < messages.size(); ++i) {
      if (!messages[i].is_object()) {
        refuse("expected an object as message " + std::to_string(i));
      }
      const std::string& role = text(messages[i], "role");
      const std::string& content = text(messages[i], "content");
      if (role == "system" && i == 0) {
        add(Kind::Text, content, false);
      } else if (role == "user") {
        add(Kind::User, "", false);
        add(Kind::Text, content, false);
      } else if (role == "assistant") {
        add(Kind::Assistant, "", false);
        add(Kind::Text, content, true);
        add(Kind::Eos, "", true);
        has_answer = true;
      } else {
        refuse("message " + std::to_string(i) + " has the role \"" + role.substr(0, 40) +
               "\"; expected user or assistant, or system first");
      }
    }
    if (!has_answer) {
      refuse("no message is the assistant's, so nothing is trained on");
    }
  }

  const std::string& where_;
  Json json_;
  std::vector<DocumentPart> parts_;
};

}  // namespace

std::vector<DocumentPart> parse_document(std::string_view line, const std::string& where) {
  return Line(line, where).parts();
}

}  // namespace ciuic::core
