// SPDX-License-Identifier: MIT
#include "core/data/tokenizer/tokenizer.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

#include "core/data/mapped_file.h"
#include "core/log/failure.h"
#include "core/plugin/sha256.h"

namespace ciuic::core {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;

}  // namespace

std::string tokenizer_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error)
             ? (std::filesystem::path(path) / "tokenizer.json").string()
             : path;
}

Tokenizer Tokenizer::open(const std::string& path) {
  const std::string file = tokenizer_file(path);
  const MappedFile mapped(file, "expected a Hugging Face tokenizer.json");
  if (mapped.bytes().size() > kMostBytes) {
    throw Failure(ExitCode::Usage,
                  file + " has " + std::to_string(mapped.bytes().size()) +
                      " bytes, expected at most " + std::to_string(kMostBytes),
                  "give a tokenizer.json", {{"file", file}});
  }
  return parse(mapped.bytes(), file);
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& name) {
  return Tokenizer(parse_tokenizer(json, name), name, core::sha256(json));
}

Tokenizer::Tokenizer(TokenizerSpec spec, std::string file, std::string sha256)
    : spec_(std::move(spec)),
      added_(spec_.added),
      splitter_([&] {
        try {
          return WordSplitter(spec_);
        } catch (const Failure& failure) {
          throw Failure(failure.code(), file + ": " + failure.what(), "", {{"file", file}});
        }
      }()),
      pairs_(spec_),
      file_(std::move(file)),
      sha256_(std::move(sha256)) {
  if (spec_.takes_whole_words) {
    for (size_t id = 0; id < spec_.tokens.size(); ++id) {
      words_.emplace(spec_.tokens[id], static_cast<int32_t>(id));
    }
    for (const AddedTokenSpec& token : spec_.added) {
      words_.erase(token.content);
    }
    words_.erase("");
  }
}

std::optional<int32_t> Tokenizer::id_of(std::string_view added_token) const {
  for (const AddedTokenSpec& token : spec_.added) {
    if (token.content == added_token) {
      return token.id;
    }
  }
  return std::nullopt;
}

bool Tokenizer::is_special(int64_t id) const {
  return std::any_of(spec_.added.begin(), spec_.added.end(),
                     [id](const AddedTokenSpec& t) { return t.id == id && t.is_special; });
}

std::string_view Tokenizer::bytes(int64_t id) const {
  return id >= 0 && id < num_ids() ? std::string_view(spec_.tokens[static_cast<size_t>(id)])
                                   : std::string_view();
}

std::string Tokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    text += bytes(token);
  }
  return text;
}

bool Tokenizer::can_restart() const {
  return splitter_.can_restart() && !added_.looks_behind() && !added_.strips();
}

// ---- Encoder ----

namespace {

constexpr size_t kKnownWords = size_t{1} << 15;
constexpr size_t kWindowBytes = size_t{64} << 10;
constexpr size_t kPastTheEnd = size_t{4} << 10;
/// Offsets inside a word are 32 bits wide.
constexpr size_t kLongestWord = std::numeric_limits<int32_t>::max() / 2;

size_t place_of(const std::array<uint64_t, 3>& key, size_t length) {
  uint64_t h = key[0] * 0x9E3779B97F4A7C15u ^ (key[1] + length) * 0xBF58476D1CE4E5B9u ^
               key[2] * 0x94D049BB133111EBu;
  h ^= h >> 32;
  return static_cast<size_t>((h * 0x9E3779B97F4A7C15u) >> 40) % kKnownWords;
}

/// The last place at or before `at` where a character begins.
size_t character_begin(std::string_view text, size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) {
    --at;
  }
  return at;
}

}  // namespace

Encoder::Encoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer), known_(kKnownWords) {}

void Encoder::encode(std::string_view text, std::vector<int32_t>& out) {
  if (tokenizer_.can_restart()) {
    encode_chunk(text, 0, text.size(), out);
  } else {
    encode_window(text, 0, text.size(), false, out);
  }
}

size_t Encoder::encode_chunk(std::string_view text, size_t begin, size_t end,
                             std::vector<int32_t>& out) {
  size_t window = kWindowBytes;
  size_t past = kPastTheEnd;
  size_t at = begin;
  while (at < end) {
    const size_t stop = character_begin(text, std::min({text.size(), at + window, end + past}));
    const bool is_cut = stop < text.size();
    const size_t done = at + encode_window(text.substr(at, stop - at), at, end, is_cut, out);
    if (done == at) {  // a word longer than the window
      window *= 2;
      past *= 2;
    }
    at = done;
  }
  return at;
}

/// Encodes the words of `window` (at `offset` of the text) that begin before `end` and that the
/// text behind the window cannot change. Returns where the last of them ends.
size_t Encoder::encode_window(std::string_view window, size_t offset, size_t end, bool is_cut,
                              std::vector<int32_t>& out) {
  tokenizer_.added_.split(window, parts_);
  // Up to here no added token can begin that the rest would make longer, or make one at all.
  const size_t longest = tokenizer_.added_.longest();
  const size_t sure =
      is_cut ? character_begin(window, window.size() - std::min(window.size(), longest))
             : window.size();
  size_t done = 0;
  const WordSplitter::Sink sink = [&](std::string_view word) { encode_word(word, out); };
  const auto sink_before_end = [&](std::string_view word) {
    const auto at = static_cast<size_t>(word.data() - window.data());
    if (offset + at < end) {
      encode_word(word, out);
      done = at + word.size();
    }
  };
  const bool has_end = is_cut || offset + window.size() > end;
  const WordSplitter::Sink guarded = sink_before_end;
  for (const AddedTokens::Part& part : parts_) {
    const bool is_sure = !is_cut || (part.id >= 0 ? part.begin < sure : part.end < sure);
    if (offset + part.begin >= end || (part.id >= 0 && !is_sure) || part.begin >= window.size()) {
      break;
    }
    if (part.id >= 0) {
      out.push_back(part.id);
      done = part.end;
      continue;
    }
    const size_t part_end = is_sure ? part.end : std::max(part.begin, std::min(part.end, sure));
    const std::string_view text = window.substr(part.begin, part_end - part.begin);
    tokenizer_.splitter_.split(text, !is_sure, has_end ? guarded : sink, splitting_);
    if (!has_end) {
      done = part.end;
    }
    if (!is_sure) {
      break;
    }
  }
  return done;
}

void Encoder::encode_word(std::string_view word, std::vector<int32_t>& out) {
  if (word.size() > Known::kLongest) {
    return encode_new_word(word, out);
  }
  std::array<uint64_t, 3> key{};
  std::memcpy(key.data(), word.data(), word.size());
  Known& known = known_[place_of(key, word.size())];
  if (known.length == word.size() && known.key == key) {
    out.insert(out.end(), known.tokens.begin(), known.tokens.begin() + known.count);
    return;
  }
  const size_t before = out.size();
  encode_new_word(word, out);
  const size_t count = out.size() - before;
  if (count <= Known::kMostTokens) {
    known.key = key;
    known.length = static_cast<uint8_t>(word.size());
    known.count = static_cast<uint8_t>(count);
    std::copy(out.end() - static_cast<std::ptrdiff_t>(count), out.end(), known.tokens.begin());
  }
}

void Encoder::encode_new_word(std::string_view word, std::vector<int32_t>& out) {
  if (word.size() > kLongestWord) {
    throw Failure(ExitCode::Usage, "a word of " + std::to_string(word.size()) +
                                       " bytes is too long for the tokenizer");
  }
  if (const auto at = tokenizer_.words_.find(word); at != tokenizer_.words_.end()) {
    out.push_back(at->second);
    return;
  }
  tokenizer_.pairs_.encode(word, out, pairing_);
}

}  // namespace ciuic::core
