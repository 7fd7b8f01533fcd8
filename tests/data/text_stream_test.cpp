// SPDX-License-Identifier: MIT
#include "core/data/text_stream.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/error.hpp>

#include "core/log/failure.h"
#include "tests/data/text_folder.h"

namespace ciuic::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Call>
std::string failure_of(Call call) {
  try {
    call();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::Usage);
    return failure.what();
  }
  return "no failure";
}

std::vector<int64_t> all_tokens(const TextStream& stream) {
  std::vector<int64_t> tokens(static_cast<size_t>(stream.num_tokens()));
  stream.tokens(0, stream.num_tokens(), tokens.data());
  return tokens;
}

TEST(TextStream, FilesInSortedOrderHaveOneEosBetweenTwo) {
  const TextFolder folder;
  folder.write("c.txt", "\xc3\xa9");
  folder.write("a.txt", "ab");
  folder.write("b.txt", "\n");
  const TextStream stream(find_files({folder / "c.txt", folder / "[ab].txt"}, "data.train"),
                          TokenIds{});
  EXPECT_THAT(all_tokens(stream), ElementsAre('a', 'b', 257, '\n', 257, 0xc3, 0xa9));
}

TEST(TextStream, AnyPieceEqualsThatOfTheWhole) {
  const TextFolder folder;
  folder.write("a.txt", letters(5));
  folder.write("b.txt", "x");
  folder.write("c.txt", letters(7));
  const TextStream stream(find_files({folder / "*.txt"}, "data.train"), TokenIds{});
  const std::vector<int64_t> all = all_tokens(stream);
  ASSERT_EQ(all.size(), 5u + 1 + 1 + 1 + 7);
  for (int64_t begin = 0; begin <= stream.num_tokens(); ++begin) {
    for (int64_t count = 0; begin + count <= stream.num_tokens(); ++count) {
      std::vector<int32_t> piece(static_cast<size_t>(count) + 1, -7);
      stream.tokens(begin, count, piece.data());
      EXPECT_TRUE(std::equal(piece.begin(), piece.end() - 1, all.begin() + begin));
      EXPECT_EQ(piece.back(), -7);
    }
  }
  int64_t out = 0;
  EXPECT_THROW(stream.tokens(-1, 1, &out), Error);
  EXPECT_THROW(stream.tokens(stream.num_tokens(), 1, &out), Error);
  EXPECT_THROW(stream.tokens(0, INT64_MAX, &out), Error);
}

TEST(TextStream, RowsNeedTheTokenAfterThem) {
  const TextFolder folder;
  for (int64_t size : {1, 4, 5, 8, 9}) {
    const TextStream stream({folder.write("a.txt", letters(static_cast<size_t>(size)))},
                            TokenIds{});
    EXPECT_EQ(stream.rows(4), (size - 1) / 4) << size;
  }
}

TEST(TextStream, InvalidTextIsRefusedWithItsPlace) {
  const TextFolder folder;
  const std::string file = folder.write("a.txt", "one\ntwo \xff three\n");
  EXPECT_EQ(failure_of([&] { TextStream({file}, TokenIds{}); }),
            file + ":2: not UTF-8 at byte 8 of the file");
  const std::string empty = folder.write("b.txt", "");
  EXPECT_EQ(failure_of([&] { TextStream({empty}, TokenIds{}); }), empty + " is empty");
  EXPECT_EQ(failure_of([&] { TextStream({folder / "none"}, TokenIds{}); }),
            (folder / "none") + " cannot be read: No such file or directory");
  EXPECT_EQ(failure_of([&] { TextStream({"/dev/null"}, TokenIds{}); }),
            "/dev/null is no plain file");
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(failure_of([&] { TextStream({pipe}, TokenIds{}); }), pipe + " is no plain file");
}

TEST(TextStream, TheModelMustHoldItsTokens) {
  const TextFolder folder;
  const std::string a = folder.write("a.txt", "a");
  const std::string b = folder.write("b.txt", "b");
  EXPECT_THAT(failure_of([&] { TextStream({a}, TokenIds{.vocab_size = 100}); }),
              HasSubstr("vocab_size is 100"));
  EXPECT_THAT(failure_of([&] {
                TextStream({a, b}, TokenIds{.vocab_size = 257});
              }),
              HasSubstr("eos_token_id is 257"));
  EXPECT_THAT(failure_of([&] { TextStream({a, b}, TokenIds{.eos = -1}); }), HasSubstr("not set"));
  EXPECT_NO_THROW(TextStream({a}, TokenIds{.vocab_size = 256, .eos = -1}));
}

TEST(FindFiles, TakesPathsAndGlobsEachFileOnce) {
  const TextFolder folder;
  folder.write("b.txt", "b");
  folder.write("a.txt", "a");
  folder.write("odd[1].txt", "o");
  std::filesystem::create_directory(folder / "d.txt");
  EXPECT_THAT(find_files({folder / "*.txt", folder / "a.txt"}, "data.train"),
              ElementsAre(folder / "a.txt", folder / "b.txt", folder / "odd[1].txt"));
  EXPECT_THAT(find_files({folder / "odd[1].txt"}, "data.train"),
              ElementsAre(folder / "odd[1].txt"));
}

TEST(FindFiles, NamesWhatIsMissingOrNotBuilt) {
  const TextFolder folder;
  folder.write("a.jsonl", "{}");
  EXPECT_EQ(failure_of([&] { find_files({folder / "*.txt"}, "data.train"); }),
            "data.train: no file matches " + (folder / "*.txt"));
  EXPECT_EQ(failure_of([&] { find_files({folder / "x.txt"}, "data.train"); }),
            "data.train: no such file: " + (folder / "x.txt"));
  EXPECT_EQ(failure_of([&] { find_files({folder / "a.jsonl"}, "data.validation"); }),
            "data.validation: " + (folder / "a.jsonl") +
                ": .jsonl is not read yet; token files come later");
  EXPECT_THAT(failure_of([&] { find_files({folder / ""}, "data.train"); }),
              HasSubstr("is a folder"));
}

}  // namespace
}  // namespace ciuic::core
