// SPDX-License-Identifier: MIT
#include "core/data/tokenizer/tokenizer_spec.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "core/data/tokenizer/byte_alphabet.h"
#include "core/log/failure.h"

namespace ciuic::core {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargestId = (int64_t{1} << 24) - 1;
constexpr size_t kLongestToken = 65536;
constexpr int kDeepestSequence = 8;

std::string in_quotes(const Json& value) {
  std::string text = value.dump(-1, ' ', true);
  constexpr size_t kLongest = 60;
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  TokenizerSpec read(const Json& root) {
    object(root, "the file",
           {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
            "post_processor", "decoder", "model"});
    if (const Json* version = find(root, "version"); version != nullptr && *version != "1.0") {
      refuse("version", "got " + in_quotes(*version) + ", expected \"1.0\"");
    }
    null(root, "truncation", "truncation");
    null(root, "padding", "padding");
    read_normalizer(root);
    read_pre_tokenizer(need(root, "pre_tokenizer", "pre_tokenizer"));
    read_post_processor(root);
    read_decoder(need(root, "decoder", "decoder"), "decoder", 0);
    read_model(need(root, "model", "model"));
    read_added_tokens(root);
    return std::move(spec_);
  }

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& what) const {
    throw Failure(ExitCode::Usage, name_ + ": " + key + ": " + what, "", {{"file", name_}});
  }

  // ---- any object ----

  static const Json* find(const Json& object, const char* key) {
    const auto at = object.find(key);
    return at != object.end() && !at->is_null() ? &*at : nullptr;
  }

  const Json& need(const Json& object, const char* name, const std::string& key) const {
    const Json* value = find(object, name);
    if (value == nullptr) {
      refuse(key, "missing");
    }
    return *value;
  }

  void object(const Json& value, const std::string& key,
              std::initializer_list<std::string_view> known) const {
    if (!value.is_object()) {
      refuse(key, "got " + in_quotes(value) + ", expected an object");
    }
    for (const auto& [name, unused] : value.items()) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        refuse(key, "the key " + in_quotes(name) + " is not supported");
      }
    }
  }

  void null(const Json& object, const char* name, const std::string& key) const {
    if (const Json* value = find(object, name)) {
      refuse(key, "got " + in_quotes(*value) + "; only null is supported");
    }
  }

  [[nodiscard]] const std::string& text(const Json& object, const char* name,
                                        const std::string& key) const {
    const Json& value = need(object, name, key + "." + name);
    if (!value.is_string()) {
      refuse(key + "." + name, "got " + in_quotes(value) + ", expected a string");
    }
    return value.get_ref<const std::string&>();
  }

  [[nodiscard]] bool flag(const Json& object, const char* name, const std::string& key,
                          bool otherwise) const {
    const Json* value = find(object, name);
    if (value == nullptr) {
      return otherwise;
    }
    if (!value->is_boolean()) {
      refuse(key + "." + name, "got " + in_quotes(*value) + ", expected true or false");
    }
    return value->get<bool>();
  }

  [[nodiscard]] const std::string& type(const Json& value, const std::string& key) const {
    if (!value.is_object()) {
      refuse(key, "got " + in_quotes(value) + ", expected an object");
    }
    return text(value, "type", key);
  }

  [[nodiscard]] int32_t id(const Json& value, const std::string& key) const {
    if (!value.is_number_integer() || value < 0 || value > kLargestId) {
      refuse(key,
             "got " + in_quotes(value) + ", expected an id of 0 to " + std::to_string(kLargestId));
    }
    return value.get<int32_t>();
  }

  /// The steps of a Sequence, or the one step itself.
  template <typename Step>
  void steps(const Json& value, const std::string& key, const char* list_name, int depth,
             Step step) const {
    if (type(value, key) != "Sequence") {
      return step(value, key);
    }
    if (depth >= kDeepestSequence) {
      refuse(key, "Sequences nested too deep");
    }
    object(value, key, {"type", list_name});
    const Json& list = need(value, list_name, key + "." + list_name);
    if (!list.is_array()) {
      refuse(key + "." + list_name, "got " + in_quotes(list) + ", expected a list");
    }
    for (size_t i = 0; i < list.size(); ++i) {
      steps(list[i], key + "." + list_name + "[" + std::to_string(i) + "]", list_name, depth + 1,
            step);
    }
  }

  // ---- the parts around the model ----

  void read_normalizer(const Json& root) const {
    if (const Json* value = find(root, "normalizer")) {
      steps(*value, "normalizer", "normalizers", 0,
            [this](const Json& step, const std::string& key) {
              refuse(key, "the normalizer " + in_quotes(step["type"]) +
                              " is not supported: it would change the text");
            });
    }
  }

  void read_pre_tokenizer(const Json& value) {
    bool has_byte_level = false;
    steps(value, "pre_tokenizer", "pretokenizers", 0,
          [&](const Json& step, const std::string& key) {
            if (has_byte_level) {
              refuse(key, "nothing may follow ByteLevel");
            }
            const std::string& kind = type(step, key);
            if (kind == "Split") {
              read_split(step, key);
            } else if (kind == "Digits") {
              object(step, key, {"type", "individual_digits"});
              const bool is_single = flag(step, "individual_digits", key, false);
              spec_.splits.push_back({is_single ? "\\p{N}" : "\\p{N}+", true,
                                      SplitSpec::Behavior::Isolated, false, key});
            } else if (kind == "ByteLevel") {
              object(step, key, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
              has_byte_level = true;
              spec_.adds_prefix_space = flag(step, "add_prefix_space", key, true);
              spec_.has_byte_level_split = flag(step, "use_regex", key, true);
              (void)flag(step, "trim_offsets", key, true);  // of offsets, which nobody asks for
            } else {
              refuse(key, "the pre-tokenizer " + in_quotes(kind) +
                              " is not supported; Split, Digits, ByteLevel and Sequence are");
            }
          });
    if (!has_byte_level) {
      refuse("pre_tokenizer", "it has no ByteLevel; only byte-level tokenizers are supported");
    }
  }

  void read_split(const Json& step, const std::string& key) {
    object(step, key, {"type", "pattern", "behavior", "invert"});
    SplitSpec split;
    split.key = key + ".pattern";
    const Json& pattern = need(step, "pattern", split.key);
    object(pattern, split.key, {"Regex", "String"});
    if (pattern.size() != 1) {
      refuse(split.key, "expected Regex or String");
    }
    split.is_regex = pattern.contains("Regex");
    split.pattern = text(pattern, split.is_regex ? "Regex" : "String", split.key);
    split.is_inverted = flag(step, "invert", key, false);
    split.behavior = behavior(text(step, "behavior", key), key + ".behavior");
    if (split.pattern.empty()) {
      refuse(split.key, "it is empty");
    }
    spec_.splits.push_back(std::move(split));
  }

  [[nodiscard]] SplitSpec::Behavior behavior(const std::string& name,
                                             const std::string& key) const {
    using Behavior = SplitSpec::Behavior;
    const std::pair<const char*, Behavior> known[] = {
        {"Removed", Behavior::Removed},
        {"Isolated", Behavior::Isolated},
        {"MergedWithPrevious", Behavior::MergedWithPrevious},
        {"MergedWithNext", Behavior::MergedWithNext},
        {"Contiguous", Behavior::Contiguous}};
    for (const auto& [text, value] : known) {
      if (name == text) {
        return value;
      }
    }
    refuse(key, "got " + in_quotes(name) +
                    ", expected Removed, Isolated, MergedWithPrevious, MergedWithNext or "
                    "Contiguous");
  }

  /// What would be put around a whole text, as a bos: never around a text that is trained on.
  void read_post_processor(const Json& root) const {
    if (const Json* value = find(root, "post_processor")) {
      steps(*value, "post_processor", "processors", 0,
            [this](const Json& step, const std::string& key) {
              const std::string& kind = type(step, key);
              if (kind != "ByteLevel" && kind != "TemplateProcessing") {
                refuse(key, "the post-processor " + in_quotes(kind) +
                                " is not supported; ByteLevel, TemplateProcessing and Sequence "
                                "are");
              }
            });
    }
  }

  void read_decoder(const Json& value, const std::string& key, int depth) const {
    bool has_byte_level = false;
    steps(value, key, "decoders", depth, [&](const Json& step, const std::string& at) {
      const std::string& kind = type(step, at);
      if (kind != "ByteLevel") {
        refuse(at, "the decoder " + in_quotes(kind) + " is not supported; ByteLevel is");
      }
      has_byte_level = true;
    });
    if (!has_byte_level) {
      refuse(key, "it has no ByteLevel");
    }
  }

  // ---- the model ----

  void read_model(const Json& model) {
    if (const std::string& kind = type(model, "model"); kind != "BPE") {
      refuse("model.type", "got " + in_quotes(kind) + "; only \"BPE\" is supported");
    }
    object(model, "model",
           {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
            "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
    if (const Json* dropout = find(model, "dropout"); dropout != nullptr && *dropout != 0) {
      refuse("model.dropout", "got " + in_quotes(*dropout) + "; only null is supported");
    }
    null(model, "unk_token", "model.unk_token");
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (const Json* affix = find(model, name); affix != nullptr && *affix != "") {
        refuse(std::string("model.") + name,
               "got " + in_quotes(*affix) + "; only null is supported");
      }
    }
    (void)flag(model, "fuse_unk", "model", false);  // of unknown tokens, and there are none
    if (flag(model, "byte_fallback", "model", false)) {
      refuse("model.byte_fallback", "got true; only false is supported");
    }
    spec_.takes_whole_words = flag(model, "ignore_merges", "model", false);
    read_vocabulary(need(model, "vocab", "model.vocab"));
    read_merges(need(model, "merges", "model.merges"));
  }

  void read_vocabulary(const Json& vocabulary) {
    if (!vocabulary.is_object()) {
      refuse("model.vocab", "got " + in_quotes(vocabulary) + ", expected an object");
    }
    ids_.reserve(vocabulary.size());
    for (const auto& [written, value] : vocabulary.items()) {
      const int32_t number = id(value, "model.vocab[" + in_quotes(written) + "]");
      if (written.empty() || written.size() > kLongestToken) {
        refuse("model.vocab[" + in_quotes(written) + "]",
               "a token of " + std::to_string(written.size()) + " bytes, expected 1 to " +
                   std::to_string(kLongestToken));
      }
      std::string& place = token_at(number);
      if (!place.empty()) {
        refuse("model.vocab[" + in_quotes(written) + "]",
               "the id " + std::to_string(number) + " is another token's already");
      }
      // One with characters beyond the alphabet is made by no merge: it is an added token's.
      place = bytes_of(written).value_or(written);
      ids_.emplace(written, number);
    }
    for (int byte = 0; byte < 256; ++byte) {
      const std::string written = written_bytes(std::string(1, static_cast<char>(byte)));
      const auto at = ids_.find(written);
      if (at == ids_.end()) {
        refuse("model.vocab", "there is no token " + in_quotes(written) + " for the byte " +
                                  std::to_string(byte) + ", so not every text can be written");
      }
      spec_.byte_ids.push_back(at->second);
    }
  }

  std::string& token_at(int32_t number) {
    const auto index = static_cast<size_t>(number);
    if (index >= spec_.tokens.size()) {
      spec_.tokens.resize(index + 1);
    }
    return spec_.tokens[index];
  }

  void read_merges(const Json& merges) {
    if (!merges.is_array()) {
      refuse("model.merges", "got " + in_quotes(merges) + ", expected a list");
    }
    spec_.merges.reserve(merges.size());
    for (size_t rank = 0; rank < merges.size(); ++rank) {
      const std::string key = "model.merges[" + std::to_string(rank) + "]";
      const auto pair = halves(merges[rank]);
      if (!pair) {
        refuse(key, "got " + in_quotes(merges[rank]) + ", expected \"a b\" or [\"a\", \"b\"]");
      }
      const auto& [left, right] = *pair;
      spec_.merges.push_back({id_of(left, key), id_of(right, key), id_of(left + right, key)});
    }
  }

  static std::optional<std::pair<std::string, std::string>> halves(const Json& merge) {
    std::string left;
    std::string right;
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else if (merge.is_string()) {
      const auto& both = merge.get_ref<const std::string&>();
      const size_t space = both.find(' ');
      if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos) {
        return std::nullopt;
      }
      left = both.substr(0, space);
      right = both.substr(space + 1);
    }
    return left.empty() || right.empty() ? std::nullopt : std::optional(std::pair(left, right));
  }

  [[nodiscard]] int32_t id_of(const std::string& token, const std::string& key) const {
    const auto at = ids_.find(token);
    if (at == ids_.end()) {
      refuse(key, "model.vocab has no " + in_quotes(token));
    }
    return at->second;
  }

  // ---- added tokens ----

  void read_added_tokens(const Json& root) {
    const Json* list = find(root, "added_tokens");
    if (list == nullptr) {
      return;
    }
    if (!list->is_array()) {
      refuse("added_tokens", "got " + in_quotes(*list) + ", expected a list");
    }
    for (size_t i = 0; i < list->size(); ++i) {
      read_added_token((*list)[i], "added_tokens[" + std::to_string(i) + "]");
    }
  }

  void read_added_token(const Json& value, const std::string& key) {
    object(value, key,
           {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    AddedTokenSpec token;
    token.id = id(need(value, "id", key + ".id"), key + ".id");
    token.content = text(value, "content", key);
    token.is_special = flag(value, "special", key, false);
    token.is_single_word = flag(value, "single_word", key, false);
    token.strips_left = flag(value, "lstrip", key, false);
    token.strips_right = flag(value, "rstrip", key, false);
    token.is_normalized = flag(value, "normalized", key, !token.is_special);
    if (token.content.empty() || token.content.size() > kLongestToken) {
      refuse(key + ".content", "it has " + std::to_string(token.content.size()) +
                                   " bytes, expected 1 to " + std::to_string(kLongestToken));
    }
    const auto in_model = ids_.find(token.content);
    if (in_model != ids_.end() ? in_model->second != token.id : !token_at(token.id).empty()) {
      refuse(key + ".id", "the id " + std::to_string(token.id) +
                              " is another token's, or this token has another id already");
    }
    ids_.emplace(token.content, token.id);
    token_at(token.id) = token.content;
    spec_.added.push_back(std::move(token));
  }

  const std::string& name_;
  TokenizerSpec spec_;
  std::unordered_map<std::string, int32_t> ids_;  // as they are written
};

}  // namespace

TokenizerSpec parse_tokenizer(std::string_view json, const std::string& name) {
  Json root;
  try {
    root = Json::parse(json);
  } catch (const Json::parse_error& e) {
    const size_t at = std::min(e.byte, json.size());
    const auto line =
        1 + std::count(json.begin(), json.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    throw Failure(ExitCode::Usage,
                  name + ":" + std::to_string(line) + ": no JSON at byte " + std::to_string(at), "",
                  {{"file", name}});
  }
  return Reader(name).read(root);
}

}  // namespace ciuic::core
