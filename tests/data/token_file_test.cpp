// SPDX-License-Identifier: MIT
#include "core/data/token_file.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/data/megatron_writer.h"
#include "core/data/token_stream.h"
#include "core/log/failure.h"
#include "tests/data/text_folder.h"
#include "tests/data/token_files.h"

namespace ciuic::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
void expect_read(uint8_t code) {
  const TextFolder folder;
  const std::string bin = folder.write("a.bin", raw(std::vector<T>{1, 2, 3, 4, 5, 100}));
  folder.write("a.idx", megatron_index(code, sizeof(T), {2, 1, 3}, {0, 2, 3}));
  const TokenFile file = TokenFile::bin(bin);
  EXPECT_THAT(tokens_of(file), ElementsAre(1, 2, 3, 4, 5, 100));
  EXPECT_EQ(file.next_document(0), 3);
  EXPECT_EQ(file.next_document(2), 3);
  EXPECT_EQ(file.next_document(3), 6);
}

TEST(TokenFile, MegatronsIntegersAreRead) {
  expect_read<uint8_t>(1);
  expect_read<int8_t>(2);
  expect_read<int16_t>(3);
  expect_read<int32_t>(4);
  expect_read<int64_t>(5);
  expect_read<uint16_t>(8);
}

TEST(TokenFile, ADamagedIndexIsRefused) {
  const TextFolder folder;
  const std::string bin = folder.write("a.bin", raw(std::vector<uint16_t>{1, 2, 3, 4}));
  const std::string good = megatron_index(8, 2, {3, 1}, {0, 1, 2});
  const auto refused = [&](const std::string& index) {
    folder.write("a.idx", index);
    return failure_of([&] { (void)TokenFile::bin(bin); });
  };
  EXPECT_EQ(refused(good), "no failure");
  for (size_t size = 1; size < good.size(); ++size) {
    EXPECT_NE(refused(good.substr(0, size)), "no failure") << size;
  }
  EXPECT_THAT(refused(""), HasSubstr("is empty"));
  EXPECT_EQ(refused(good + std::string(2, '\0')), "no failure");  // modes: all text
  EXPECT_THAT(refused(good + std::string("\0\1", 2)), HasSubstr("another mode"));
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string index = good;
    return index.replace(at, bytes.size(), bytes);
  };
  EXPECT_THAT(refused(with(0, "X")), HasSubstr("MMIDIDX"));
  EXPECT_THAT(refused(with(9, raw(uint64_t{2}))), HasSubstr("index version 2"));
  EXPECT_THAT(refused(with(17, "\7")), HasSubstr("dtype code is 7"));
  EXPECT_THAT(refused(with(17, "\4")), HasSubstr("sequence 0"));  // twice as wide
  EXPECT_THAT(refused(with(18, raw(UINT64_MAX))), HasSubstr("does not fit"));
  EXPECT_THAT(refused(with(26, raw(uint64_t{1} << 61))), HasSubstr("does not fit"));
  // Counts whose sum with the largest number is the file's size.
  EXPECT_THAT(refused(with(18, raw(uint64_t{good.size() + 1}) + raw(UINT64_MAX))),
              HasSubstr("does not fit"));
  EXPECT_THAT(refused(with(34, raw(int32_t{-1}))), HasSubstr("sequence 0 has -1"));
  EXPECT_THAT(refused(with(34, raw(INT32_MAX))), HasSubstr("sequence 0 has"));
  EXPECT_THAT(refused(with(42, raw(int64_t{2}))), HasSubstr("at byte 2, expected at byte 0"));
  EXPECT_THAT(refused(with(50, raw(INT64_MAX))), HasSubstr("sequence 1"));
  EXPECT_THAT(refused(with(58, raw(int64_t{1}))), HasSubstr("document entry 0"));
  EXPECT_THAT(refused(with(66, raw(int64_t{9}))), HasSubstr("document entry 1"));
  EXPECT_THAT(refused(with(74, raw(int64_t{1}))), HasSubstr("last document entry"));
  EXPECT_THAT(refused(megatron_index(8, 2, {3}, {0, 1})), HasSubstr("its sequences have 6 bytes"));
}

TEST(TokenFile, LlmCsHeaderIsChecked) {
  const TextFolder folder;
  std::vector<int32_t> header(256);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = 3;
  const std::string tokens = raw(std::vector<uint16_t>{50256, 7, 65535});
  const auto refused = [&](const std::string& bytes) {
    const std::string file = folder.write("a.bin", bytes);
    return failure_of([&] { (void)TokenFile::bin(file); });
  };
  EXPECT_EQ(refused(raw(header) + tokens), "no failure");
  EXPECT_THAT(tokens_of(TokenFile::bin(folder / "a.bin")), ElementsAre(50256, 7, 65535));
  EXPECT_THAT(refused(raw(header) + tokens + "x"), HasSubstr("3 tokens"));
  EXPECT_THAT(refused(raw(header)), HasSubstr("3 tokens"));
  EXPECT_THAT(refused(tokens), HasSubstr("no .idx"));
  header[2] = -3;
  EXPECT_THAT(refused(raw(header) + tokens), HasSubstr("-3 tokens"));
  header[1] = 2;
  EXPECT_THAT(refused(raw(header) + tokens), HasSubstr("version 2"));
}

TEST(TokenFile, APipeIsNoFile) {
  const TextFolder folder;
  const std::string pipe = folder / "pipe.bin";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(failure_of([&] { (void)TokenFile::bin(pipe); }), HasSubstr("is no plain file"));
}

TEST(TokenFile, IdsOutsideTheVocabularyAreNamed) {
  const TextFolder folder;
  const auto refused = [&](int32_t id) {
    const std::string bin = folder.write("a.bin", raw(std::vector<int32_t>{1, 2, id, 4}));
    folder.write("a.idx", megatron_index(4, 4, {4}, {0, 1}));
    std::vector<TokenFile> files;
    files.push_back(TokenFile::bin(bin));
    return failure_of([&] { TokenStream(std::move(files), TokenIds{.vocab_size = 1000}); });
  };
  EXPECT_EQ(refused(999), "no failure");
  EXPECT_THAT(refused(1000), HasSubstr("token 2 is 1000, expected 0 to 999"));
  EXPECT_THAT(refused(-2), HasSubstr("token 2 is -2"));
}

TEST(TokenFile, DocumentsOfTheIndexAreDocuments) {
  const TextFolder folder;
  const std::string bin = folder.write("a.bin", raw(std::vector<int32_t>{1, 2, 9, 3, 4, 5}));
  folder.write("a.idx", megatron_index(4, 4, {3, 2, 1}, {0, 1, 2, 3}));
  std::vector<TokenFile> files;
  files.push_back(TokenFile::bin(bin));
  const TokenStream stream(std::move(files), TokenIds{.vocab_size = 10, .eos = 9});
  std::vector<int64_t> inputs(5);
  std::vector<int64_t> targets(5);
  std::vector<int32_t> starts(5);
  stream.piece(0, 5, inputs.data(), targets.data(), starts.data());
  EXPECT_THAT(targets, ElementsAre(2, 9, kNoTarget, 4, kNoTarget));
  EXPECT_THAT(starts, ElementsAre(0, 0, 0, 3, 3));
}

TEST(MegatronWriter, WhatItWritesIsRead) {
  const TextFolder folder;
  for (const int64_t num_ids : {int64_t{65499}, int64_t{65500}}) {
    const std::string prefix = folder / ("w" + std::to_string(num_ids));
    {
      MegatronWriter writer(prefix, num_ids);
      writer.add(std::vector<int32_t>{1, 2});
      writer.add(std::vector<int32_t>{65498});
      writer.end_document();
      writer.end_document();  // an empty one is none
      writer.add(std::vector<int32_t>{4});
      writer.end_document();
      EXPECT_FALSE(std::filesystem::exists(prefix + ".bin"));
      writer.publish();
    }
    const TokenFile file = TokenFile::bin(prefix + ".bin");
    EXPECT_THAT(tokens_of(file), ElementsAre(1, 2, 65498, 4));
    EXPECT_EQ(file.next_document(0), 3);
  }
  { const MegatronWriter abandoned(folder / "x", 10); }
  for (const auto& entry : std::filesystem::directory_iterator(folder / "")) {
    EXPECT_EQ(entry.path().filename().string().find("partial"), std::string::npos);
  }
}

}  // namespace
}  // namespace ciuic::core
