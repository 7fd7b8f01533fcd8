// SPDX-License-Identifier: MIT
#include "core/data/tokenizer/tokenizer.h"

#include <fstream>
#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFile = CIUIC_SOURCE_DIR "/tests/data/tokenizer/tokenizer.json";

json spec() {
  std::ifstream file(kFile);
  return json::parse(file);
}

std::vector<int32_t> encode(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> tokens;
  Encoder(tokenizer).encode(text, tokens);
  return tokens;
}

std::string failure_of(const std::string& text) {
  try {
    (void)Tokenizer::parse(text, "t.json");
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::Usage);
    return failure.what();
  }
  return "no failure";
}

std::string failure_of(const char* pointer, const json& value) {
  json changed = spec();
  changed[json::json_pointer(pointer)] = value;
  return failure_of(changed.dump());
}

/// Random text of letters, digits, spaces, lines, many scripts and special tokens.
std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> kParts{
      " ",
      "  ",
      "\n",
      "\r\n",
      "\t",
      "\u00a0",
      "a",
      "the",
      " and",
      "Earth",
      "1",
      "2024",
      "!",
      "...",
      "'s",
      "漢字",
      "かな",
      "é",
      "e\u0301",
      "Привет",
      "😀",
      "<｜User｜>",
      "<｜",
      "<｜end▁of▁sentence｜>",
      std::string(1, '\0'),
      "\u180e",
      "٣",
      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"};
  std::string text;
  for (size_t n = random() % 60; n > 0; --n) {
    text += kParts[random() % kParts.size()];
  }
  return text;
}

// The ids are those of the tokenizers package; tests/peer compares many more.
TEST(Tokenizer, GivesTheTokensOfTheTokenizersPackage) {
  const Tokenizer tokenizer = Tokenizer::open(kFile);
  EXPECT_THAT(encode(tokenizer, "And the earth was 12345 漢字 x"),
              ElementsAre(269, 261, 300, 279, 35, 309, 55, 56, 35, 233, 372, 35, 123));
  EXPECT_THAT(
      encode(tokenizer,
             "<｜User｜>Let there be light<｜Assistant｜>and\n\n  void<｜end▁of▁sentence｜>"),
      ElementsAre(379, 314, 305, 298, 301, 380, 264, 13, 13, 35, 35, 360, 1));
  EXPECT_THAT(encode(tokenizer, ""), ElementsAre());
  EXPECT_EQ(tokenizer.num_ids(), 381);
  EXPECT_TRUE(tokenizer.is_special(1));
  EXPECT_FALSE(tokenizer.is_special(380));
  EXPECT_EQ(tokenizer.sha256().size(), 64u);
}

TEST(Tokenizer, TextComesBackAndChunksChangeNothing) {
  const Tokenizer tokenizer = Tokenizer::open(kFile);
  ASSERT_TRUE(tokenizer.can_restart());
  Encoder encoder(tokenizer);
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_text(random);
    std::vector<int32_t> whole;
    encoder.encode(text, whole);
    ASSERT_EQ(tokenizer.decode(whole), text);
    std::vector<int32_t> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.size(), at + 1 + random() % 40);
      at = encoder.encode_chunk(text, at, end, pieces);
    }
    ASSERT_EQ(pieces, whole) << text;
  }
}

TEST(Tokenizer, AWordLongerThanAnyWindowIsOneWord) {
  const Tokenizer tokenizer = Tokenizer::open(kFile);
  const std::string text = "a " + std::string(300000, 'x') + " b" + std::string(200000, ' ') + "c";
  const std::vector<int32_t> tokens = encode(tokenizer, text);
  EXPECT_EQ(tokenizer.decode(tokens), text);
}

TEST(Tokenizer, BothSpellingsOfMergesAreTheSame) {
  json other = spec();
  for (json& merge : other["model"]["merges"]) {
    const std::string both = merge.get<std::string>();
    merge = {both.substr(0, both.find(' ')), both.substr(both.find(' ') + 1)};
  }
  const Tokenizer pairs = Tokenizer::parse(other.dump(), "t.json");
  const Tokenizer lines = Tokenizer::open(kFile);
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    const std::string text = random_text(random);
    EXPECT_EQ(encode(pairs, text), encode(lines, text));
  }
}

TEST(Tokenizer, WhatIsNotSupportedIsRefusedByItsKey) {
  EXPECT_THAT(failure_of("/normalizer", {{"type", "NFC"}}),
              HasSubstr("t.json: normalizer: the normalizer \"NFC\" is not supported"));
  EXPECT_THAT(failure_of("/pre_tokenizer", {{"type", "Metaspace"}}),
              HasSubstr("pre_tokenizer: the pre-tokenizer \"Metaspace\""));
  EXPECT_THAT(failure_of("/pre_tokenizer/pretokenizers/3", {{"type", "Digits"}}),
              HasSubstr("it has no ByteLevel"));
  EXPECT_THAT(failure_of("/pre_tokenizer/pretokenizers/0/behavior", "Sideways"),
              HasSubstr("pre_tokenizer.pretokenizers[0].behavior: got \"Sideways\""));
  EXPECT_THAT(failure_of("/pre_tokenizer/pretokenizers/0/pattern", {{"Regex", "\\w+"}}),
              HasSubstr("pre_tokenizer.pretokenizers[0].pattern: the regular expression has \\w"));
  EXPECT_THAT(failure_of("/post_processor", {{"type", "BertProcessing"}}),
              HasSubstr("post_processor: the post-processor \"BertProcessing\""));
  EXPECT_THAT(failure_of("/decoder", {{"type", "WordPiece"}}), HasSubstr("decoder: the decoder"));
  EXPECT_THAT(failure_of("/decoder", nullptr), HasSubstr("decoder: missing"));
  EXPECT_THAT(failure_of("/truncation", {{"max_length", 5}}), HasSubstr("truncation: got"));
  EXPECT_THAT(failure_of("/model/type", "Unigram"), HasSubstr("model.type: got \"Unigram\""));
  EXPECT_THAT(failure_of("/model/byte_fallback", true), HasSubstr("model.byte_fallback: got true"));
  EXPECT_THAT(failure_of("/model/unk_token", "<unk>"), HasSubstr("model.unk_token: got"));
  EXPECT_THAT(failure_of("/model/dropout", 0.1), HasSubstr("model.dropout: got 0.1"));
  EXPECT_THAT(failure_of("/model/end_of_word_suffix", "</w>"), HasSubstr("end_of_word_suffix"));
  EXPECT_THAT(failure_of("/model/surprise", 1), HasSubstr("model: the key \"surprise\""));
  EXPECT_THAT(failure_of("/version", "2.0"), HasSubstr("version: got \"2.0\""));
}

TEST(Tokenizer, DamagedFilesAreRefused) {
  const std::string good = spec().dump();
  for (size_t size = 0; size < good.size(); size += 97) {
    EXPECT_NE(failure_of(good.substr(0, size)), "no failure") << size;
  }
  EXPECT_EQ(failure_of("{\n\n x"), "t.json:3: no JSON at byte 5");
  EXPECT_THAT(failure_of("\"\xff\""), HasSubstr("no JSON"));
  EXPECT_THAT(failure_of(std::string(1 << 20, '[')), HasSubstr("no JSON"));
  EXPECT_THAT(failure_of("[]"), HasSubstr("the file: got []"));
  EXPECT_THAT(failure_of("/model/vocab/th", 35), HasSubstr("the id 35 is another token's"));
  EXPECT_THAT(failure_of("/model/vocab/th", -1), HasSubstr("model.vocab[\"th\"]: got -1"));
  EXPECT_THAT(failure_of("/model/vocab/th", 1e18), HasSubstr("expected an id"));
  EXPECT_THAT(failure_of("/model/vocab/th", int64_t{1} << 40), HasSubstr("expected an id"));
  EXPECT_THAT(failure_of("/model/merges/0", "q q"),
              HasSubstr("model.merges[0]: model.vocab has no"));
  EXPECT_THAT(failure_of("/model/merges/0", "t h e"), HasSubstr("model.merges[0]: got"));
  EXPECT_THAT(failure_of("/model/merges/0", {"t", 7}), HasSubstr("model.merges[0]: got"));
  EXPECT_THAT(failure_of("/added_tokens/0/id", 40), HasSubstr("added_tokens[0].id"));
  EXPECT_THAT(failure_of("/added_tokens/3/content", ""), HasSubstr("added_tokens[3].content"));
  json without = spec();
  without["model"]["vocab"].erase("Ġ");
  EXPECT_THAT(failure_of(without.dump()), HasSubstr("for the byte 32"));
  json deep = {{"type", "ByteLevel"}};
  for (int i = 0; i < 20; ++i) {
    deep = {{"type", "Sequence"}, {"pretokenizers", json::array({deep})}};
  }
  EXPECT_THAT(failure_of("/pre_tokenizer", deep), HasSubstr("nested too deep"));
}

TEST(Pattern, WhatMeansSomethingElseIsRefused) {
  const auto refused = [](const std::string& pattern) {
    try {
      (void)Pattern::regex(pattern, "key");
    } catch (const Failure& failure) {
      return std::string(failure.what());
    }
    return std::string("no failure");
  };
  for (const char* good :
       {"\\p{N}{1,3}", "[^\\r\\n\\p{L}]?\\p{L}+", "\\s+(?!\\S)", "(?i:'s|'t)",
        "\\u4e00|\\x41|\\x{4e00}", "\\p{Han}+|\\P{^Lu}", "a{2}", "[\\s\\[\\]]"}) {
    EXPECT_EQ(refused(good), "no failure") << good;
  }
  for (const char* bad :
       {"\\w", "\\h", "\\bx", "^a", "a$", "[a[b]]", "[a&&b]", "\\p{N}{1,3}+", "a{,3}", "(?m)a",
        "(?<n>a)", "\\p{Nope}", "[\\S]", "\\1", "\\xe9", "[a", "(a", "a**"}) {
    EXPECT_THAT(refused(bad), HasSubstr("key: ")) << bad;
  }
  EXPECT_THAT(refused("a*"), HasSubstr("matches the empty text"));
}

TEST(Pattern, ALongRunOfSpacesNeedsNoLongTime) {
  const Pattern pattern = Pattern::regex("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", "key");
  Pattern::Scratch scratch;
  Pattern::Range range;
  const std::string text = std::string(3'000'000, ' ') + "x";
  ASSERT_EQ(pattern.find(text, 0, false, range, scratch), Pattern::Found::Match);
  EXPECT_EQ(range.end, 2'999'999u);
}

}  // namespace
}  // namespace ciuic::core
