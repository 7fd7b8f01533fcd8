// SPDX-License-Identifier: MIT
#include "core/data/find_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log/failure.h"
#include "tests/data/text_folder.h"

namespace ciuic::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

TEST(FindFiles, AnIndexStandsForItsTokens) {
  const TextFolder folder;
  folder.write("a.bin", "b");
  folder.write("a.idx", "i");
  EXPECT_THAT(find_files({folder / "a.*"}, "data.train"), ElementsAre(folder / "a.bin"));
  EXPECT_EQ(kind_of_file("x/a.bin"), FileKind::Tokens);
  EXPECT_EQ(kind_of_file("a.jsonl"), FileKind::JsonLines);
  EXPECT_EQ(kind_of_file("a.bin/b"), FileKind::Text);
}

TEST(FindFiles, NamesWhatIsMissingOrNotRead) {
  const TextFolder folder;
  folder.write("a.parquet", "{}");
  EXPECT_EQ(failure_of([&] { find_files({folder / "*.txt"}, "data.train"); }),
            "data.train: no file matches " + (folder / "*.txt"));
  EXPECT_EQ(failure_of([&] { find_files({folder / "x.txt"}, "data.train"); }),
            "data.train: no such file: " + (folder / "x.txt"));
  EXPECT_EQ(failure_of([&] { find_files({folder / "a.parquet"}, "data.validation"); }),
            "data.validation: " + (folder / "a.parquet") + ": .parquet is not read");
  EXPECT_THAT(failure_of([&] { find_files({folder / ""}, "data.train"); }),
              HasSubstr("is a folder"));
}

}  // namespace
}  // namespace ciuic::core
