// SPDX-License-Identifier: MIT
#include "core/generate/text_codec.h"

#include <numeric>
#include <utility>

#include "core/data/tokenizer/tokenizer.h"
#include "core/log/failure.h"

namespace ciuic::core {
namespace {

constexpr int64_t kBytes = 256;

class ByteCodec final : public TextCodec {
 public:
  explicit ByteCodec(const TokenIds& ids) : ids_(ids) {}

  [[nodiscard]] std::vector<int64_t> encode(std::string_view text) const override {
    std::vector<int64_t> tokens;
    tokens.reserve(text.size());
    for (const char c : text) {
      tokens.push_back(static_cast<unsigned char>(c));
    }
    return tokens;
  }
  [[nodiscard]] std::string decode(int64_t token) const override {
    return token >= 0 && token < kBytes ? std::string(1, static_cast<char>(token)) : std::string();
  }
  [[nodiscard]] std::vector<int64_t> candidates() const override {
    std::vector<int64_t> tokens(kBytes);
    std::iota(tokens.begin(), tokens.end(), 0);
    if (ids_.eos >= kBytes && ids_.eos < ids_.vocab_size) {
      tokens.push_back(ids_.eos);
    }
    return tokens;
  }
  [[nodiscard]] int64_t first_token() const override {
    return ids_.bos >= 0 && ids_.bos < ids_.vocab_size ? ids_.bos : ' ';
  }
  [[nodiscard]] int64_t eos() const override { return ids_.eos; }

 private:
  TokenIds ids_;
};

class TokenizerCodec final : public TextCodec {
 public:
  TokenizerCodec(const TokenIds& ids, Tokenizer tokenizer)
      : ids_(ids), tokenizer_(std::move(tokenizer)) {}

  [[nodiscard]] std::vector<int64_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    Encoder(tokenizer_).encode(text, tokens);
    return {tokens.begin(), tokens.end()};
  }
  [[nodiscard]] std::string decode(int64_t token) const override {
    const bool is_text =
        token >= 0 && token < tokenizer_.num_ids() && !tokenizer_.is_special(token);
    return is_text ? std::string(tokenizer_.bytes(token)) : std::string();
  }
  /// A vocabulary may have places for tokens that there are none of.
  [[nodiscard]] std::vector<int64_t> candidates() const override {
    std::vector<int64_t> tokens;
    for (int64_t token = 0; token < tokenizer_.num_ids(); ++token) {
      if (token == ids_.eos || !decode(token).empty()) {
        tokens.push_back(token);
      }
    }
    return tokens;
  }
  [[nodiscard]] int64_t first_token() const override {
    return ids_.bos >= 0 && ids_.bos < ids_.vocab_size ? ids_.bos : encode(" ").front();
  }
  [[nodiscard]] int64_t eos() const override { return ids_.eos; }

 private:
  TokenIds ids_;
  Tokenizer tokenizer_;
};

std::unique_ptr<TextCodec> tokenizer_codec(const TokenIds& ids, const std::string& source,
                                           const std::string& file) {
  Tokenizer tokenizer = Tokenizer::open(file);
  if (tokenizer.num_ids() > ids.vocab_size) {
    throw Failure(ExitCode::Usage,
                  "the model's vocabulary is smaller than its tokenizer's: got vocab_size " +
                      std::to_string(ids.vocab_size) + ", expected at least " +
                      std::to_string(tokenizer.num_ids()),
                  "put the tokenizer.json beside it that it was trained with", {{"file", source}});
  }
  return std::make_unique<TokenizerCodec>(ids, std::move(tokenizer));
}

}  // namespace

std::unique_ptr<TextCodec> text_codec(const TokenIds& ids, const std::string& source,
                                      const std::optional<std::string>& tokenizer) {
  if (tokenizer) {
    return tokenizer_codec(ids, source, *tokenizer);
  }
  if (ids.vocab_size < kBytes) {
    throw Failure(ExitCode::Usage,
                  "the model's vocabulary is too small for bytes: got vocab_size " +
                      std::to_string(ids.vocab_size) + ", expected at least 256",
                  "take a model that was trained with data.tokenizer = \"bytes\"",
                  {{"file", source}});
  }
  return std::make_unique<ByteCodec>(ids);
}

}  // namespace ciuic::core
