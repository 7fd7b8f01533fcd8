// SPDX-License-Identifier: MIT
#include "core/data/token_cache.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/data/dataset.h"
#include "core/log/failure.h"
#include "tests/data/text_folder.h"
#include "tests/data/token_files.h"

namespace ciuic::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kTokenizer = CIUIC_SOURCE_DIR "/tests/data/tokenizer/tokenizer.json";

std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < 5'000'000; ++i) {
    text += "And the earth was " + std::to_string(i * 7919) + (i % 7 == 0 ? "\n\n" : " ") +
            (i % 11 == 0 ? "漢字 " : "") + (i % 5000 == 0 ? std::string(70000, 'x') : "void; ");
  }
  return text;
}

TEST(TokenCache, TokensAreTheSameWithAnyNumberOfThreads) {
  const TextFolder folder;
  const std::string text = long_text();
  const std::string file = folder.write("a.txt", text);
  const Tokenizer tokenizer = Tokenizer::open(kTokenizer);
  std::vector<int32_t> whole;
  Encoder(tokenizer).encode(text, whole);
  EXPECT_TRUE(tokenizer.decode(whole) == text);
  for (const int threads : {1, 2, 5}) {
    const TokenCache cache{folder / std::to_string(threads), threads};
    const std::vector<int64_t> tokens = tokens_of(cache.open(file, &tokenizer, 1));
    EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), whole.begin(), whole.end())) << threads;
  }
}

TEST(TokenCache, ATextWithoutLinesOrSpacesIsCutAllTheSame) {
  const TextFolder folder;
  const Tokenizer tokenizer = Tokenizer::open(kTokenizer);
  for (const char* word : {"and ", "x", "漢", "\n"}) {
    std::string text;
    while (text.size() < 3'000'000) {
      text += word;
    }
    const std::string file = folder.write("a.txt", text);
    std::vector<int32_t> whole;
    Encoder(tokenizer).encode(text, whole);
    const std::vector<int64_t> tokens =
        tokens_of(TokenCache{folder / "tokens", 2}.open(file, &tokenizer, 1));
    EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), whole.begin(), whole.end())) << word;
  }
}

TEST(TokenCache, QuestionsAreNoTargets) {
  const TextFolder folder;
  const std::string file = folder.write(
      "a.jsonl",
      "{\"text\": \"ab\"}\n\n{\"prompt\": \"q\", \"completion\": \"a\"}\n{\"text\": \"\"}\n");
  const TokenCache cache{folder / "cache", 2};
  const TokenFile tokens = cache.open(file, nullptr, 257);
  EXPECT_THAT(tokens_of(tokens), ElementsAre('a', 'b', 257, ~int64_t{'q'}, 'a', 257));
  std::vector<TokenFile> files;
  files.push_back(cache.open(file, nullptr, 257));  // made already
  const TokenStream stream(std::move(files), TokenIds{});
  std::vector<int64_t> inputs(5);
  std::vector<int64_t> targets(5);
  stream.piece(0, 5, inputs.data(), targets.data(), nullptr);
  EXPECT_THAT(inputs, ElementsAre('a', 'b', 257, 'q', 'a'));
  EXPECT_THAT(targets, ElementsAre('b', 257, kNoTarget, 'a', 257));
}

TEST(TokenCache, AConversationHasTheTokenizersTokens) {
  const TextFolder folder;
  const std::string file = folder.write(
      "a.jsonl",
      R"({"messages": [{"role": "user", "content": "Let there"}, {"role": "assistant", "content": " void"}]})");
  const TokenCache cache{folder / "cache", 1};
  const Tokenizer tokenizer = Tokenizer::open(kTokenizer);
  std::vector<int32_t> question;
  std::vector<int32_t> answer;
  Encoder encoder(tokenizer);
  encoder.encode("Let there", question);
  encoder.encode(" void", answer);
  std::vector<int64_t> expected{~int64_t{0}, ~int64_t{379}};
  for (const int32_t t : question) {
    expected.push_back(~int64_t{t});
  }
  expected.push_back(~int64_t{380});
  expected.insert(expected.end(), answer.begin(), answer.end());
  expected.push_back(1);
  EXPECT_EQ(tokens_of(cache.open(file, &tokenizer, 1)), expected);
  EXPECT_THAT(failure_of([&] { (void)cache.open(file, &tokenizer, 2); }),
              HasSubstr("a.jsonl:1: an answer ends in"));
  EXPECT_THAT(failure_of([&] { (void)cache.open(file, nullptr, 257); }),
              HasSubstr("a.jsonl:1: \"messages\" are written in DeepSeek-V3's form"));
}

TEST(TokenCache, AWrongLineIsNamedAndNothingStays) {
  const TextFolder folder;
  const TokenCache cache{folder / "run/tokens", 3};
  const std::string file = folder.write("a.jsonl", "{\"text\": \"a\"}\n\n{\"text\": 7}\n{]\n");
  EXPECT_EQ(failure_of([&] { (void)cache.open(file, nullptr, 257); }),
            file + ":3: expected a string as \"text\"");
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  const std::string text = folder.write("a.txt", "fine\nnot \xff fine");
  const Tokenizer tokenizer = Tokenizer::open(kTokenizer);
  EXPECT_THAT(failure_of([&] { (void)cache.open(text, &tokenizer, 1); }),
              HasSubstr("a.txt:2: not UTF-8 at byte 9"));
  const std::string empty = folder.write("e.jsonl", "\n{\"text\": \"\"}\n");
  EXPECT_THAT(failure_of([&] { (void)cache.open(empty, nullptr, 257); }), HasSubstr("has no text"));
}

TEST(TokenCache, ManyAtOnceMakeOneFile) {
  const TextFolder folder;
  const std::string file = folder.write("a.txt", long_text());
  const Tokenizer tokenizer = Tokenizer::open(kTokenizer);
  std::vector<int64_t> counts(6);
  {
    std::vector<std::jthread> threads;
    for (int64_t& count : counts) {
      threads.emplace_back([&] {
        count = TokenCache{folder / "tokens", 1}.open(file, &tokenizer, 1).num_tokens();
      });
    }
  }
  EXPECT_THAT(counts, testing::Each(counts[0]));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "tokens")) {
    files += entry.path().extension() == ".tokens" ? 1 : 0;
  }
  EXPECT_EQ(files, 1);
}

TEST(TokenCache, ADamagedFileIsNamed) {
  const TextFolder folder;
  const std::string file = folder.write("a.jsonl", "{\"text\": \"abc\"}\n");
  const TokenCache cache{folder / "tokens", 1};
  (void)cache.open(file, nullptr, 257);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "tokens")) {
    std::filesystem::resize_file(entry.path(), 40);
  }
  EXPECT_THAT(failure_of([&] { (void)cache.open(file, nullptr, 257); }), HasSubstr("are damaged"));
}

}  // namespace
}  // namespace ciuic::core
