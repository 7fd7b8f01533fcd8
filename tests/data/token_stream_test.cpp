// SPDX-License-Identifier: MIT
#include "core/data/token_stream.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/error.hpp>

#include "core/data/find_files.h"
#include "core/log/failure.h"
#include "tests/data/text_folder.h"

namespace ciuic::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TokenStream text_stream(const std::vector<std::string>& names, TokenIds ids = {}) {
  std::vector<TokenFile> files;
  for (const std::string& name : names) {
    files.push_back(TokenFile::text(name));
  }
  return TokenStream(std::move(files), ids);
}

std::vector<int64_t> all_tokens(const TokenStream& stream) {
  const auto count = static_cast<size_t>(stream.num_tokens());
  std::vector<int64_t> tokens(count);
  std::vector<int64_t> next(count);
  stream.piece(0, stream.num_tokens() - 1, tokens.data(), next.data(), nullptr);
  tokens.back() = next[count - 2];
  return tokens;
}

TEST(TokenStream, FilesInSortedOrderHaveOneEosBetweenTwo) {
  const TextFolder folder;
  folder.write("c.txt", "\xc3\xa9");
  folder.write("a.txt", "ab");
  folder.write("b.txt", "\n");
  const TokenStream stream =
      text_stream(find_files({folder / "c.txt", folder / "[ab].txt"}, "data.train"));
  EXPECT_THAT(all_tokens(stream), ElementsAre('a', 'b', 257, '\n', 257, 0xc3, 0xa9));
}

TEST(TokenStream, AnyPieceEqualsThatOfTheWhole) {
  const TextFolder folder;
  folder.write("a.txt", letters(5));
  folder.write("b.txt", "x");
  folder.write("c.txt", letters(7));
  const TokenStream stream = text_stream(find_files({folder / "*.txt"}, "data.train"));
  const std::vector<int64_t> all = all_tokens(stream);
  ASSERT_EQ(all.size(), 5u + 1 + 1 + 1 + 7);
  for (int64_t begin = 0; begin <= stream.num_tokens(); ++begin) {
    for (int64_t count = 0; begin + count < stream.num_tokens(); ++count) {
      std::vector<int64_t> piece(static_cast<size_t>(count) + 1, -7);
      std::vector<int64_t> next(static_cast<size_t>(count) + 1, -7);
      stream.piece(begin, count, piece.data(), next.data(), nullptr);
      EXPECT_TRUE(std::equal(piece.begin(), piece.end() - 1, all.begin() + begin));
      EXPECT_TRUE(std::equal(next.begin(), next.end() - 1, all.begin() + begin + 1));
      EXPECT_EQ(piece.back(), -7);
      EXPECT_EQ(next.back(), -7);
    }
  }
  int64_t out = 0;
  EXPECT_THROW(stream.piece(-1, 1, &out, &out, nullptr), Error);
  EXPECT_THROW(stream.piece(stream.num_tokens() - 1, 1, &out, &out, nullptr), Error);
  EXPECT_THROW(stream.piece(0, INT64_MAX, &out, &out, nullptr), Error);
}

TEST(TokenStream, RowsNeedTheTokenAfterThem) {
  const TextFolder folder;
  for (int64_t size : {1, 4, 5, 8, 9}) {
    const TokenStream stream =
        text_stream({folder.write("a.txt", letters(static_cast<size_t>(size)))});
    EXPECT_EQ(stream.rows(4), (size - 1) / 4) << size;
  }
}

TEST(TokenStream, InvalidTextIsRefusedWithItsPlace) {
  const TextFolder folder;
  const std::string file = folder.write("a.txt", "one\ntwo \xff three\n");
  EXPECT_EQ(failure_of([&] { text_stream({file}); }), file + ":2: not UTF-8 at byte 8 of the file");
  const std::string empty = folder.write("b.txt", "");
  EXPECT_EQ(failure_of([&] { text_stream({empty}); }), empty + " is empty");
  EXPECT_EQ(failure_of([&] { text_stream({folder / "none"}); }),
            (folder / "none") + " cannot be read: No such file or directory");
  EXPECT_EQ(failure_of([&] { text_stream({"/dev/null"}); }), "/dev/null is no plain file");
}

TEST(TokenStream, TheModelMustHoldItsTokens) {
  const TextFolder folder;
  const std::string a = folder.write("a.txt", "a");
  const std::string b = folder.write("b.txt", "b");
  EXPECT_THAT(failure_of([&] { text_stream({a}, TokenIds{.vocab_size = 100}); }),
              HasSubstr("vocab_size is 100"));
  EXPECT_THAT(failure_of([&] {
                text_stream({a, b}, TokenIds{.vocab_size = 257});
              }),
              HasSubstr("eos_token_id is 257"));
  EXPECT_THAT(failure_of([&] { text_stream({a, b}, TokenIds{.eos = -1}); }), HasSubstr("not set"));
  EXPECT_NO_THROW(text_stream({a}, TokenIds{.vocab_size = 256, .eos = -1}));
}

TEST(TokenStream, DocumentsBeginWhereFilesBeginAndBehindEos) {
  const TextFolder folder;
  const TokenStream stream =
      text_stream({folder.write("a.txt", "abc"), folder.write("b.txt", "de")});
  std::vector<int64_t> inputs(5);
  std::vector<int64_t> targets(5);
  std::vector<int32_t> starts(5);
  stream.piece(0, 5, inputs.data(), targets.data(), starts.data());
  EXPECT_THAT(inputs, ElementsAre('a', 'b', 'c', 257, 'd'));
  EXPECT_THAT(targets, ElementsAre('b', 'c', 257, kNoTarget, 'e'));
  EXPECT_THAT(starts, ElementsAre(0, 0, 0, 0, 4));
  stream.piece(2, 3, inputs.data(), targets.data(), starts.data());
  EXPECT_THAT(starts, ElementsAre(0, 0, 2, 0, 4));
  stream.piece(0, 5, inputs.data(), targets.data(), nullptr);
  EXPECT_THAT(targets, ElementsAre('b', 'c', 257, 'd', 'e'));
}

}  // namespace
}  // namespace ciuic::core
