// SPDX-License-Identifier: MIT
#include "core/log/visible.h"

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

TEST(Visible, TextStaysAsItIs) {
  EXPECT_EQ(visible(""), "");
  EXPECT_EQ(visible("a tab\tand ~"), "a tab\tand ~");
  EXPECT_EQ(visible("über 訓練 \U0001F600"), "über 訓練 \U0001F600");
}

TEST(Visible, ControlCharactersAreShown) {
  EXPECT_EQ(visible("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(visible("\x1b]0;title\a"), "\\x1b]0;title\\x07");
  EXPECT_EQ(visible("a\rb\nc\x7f"), "a\\rb\\nc\\x7f");
  EXPECT_EQ(visible(std::string_view("\0x", 2)), "\\x00x");
}

TEST(Visible, EightBitControlsAreShownToo) {
  EXPECT_EQ(visible("\xc2\x9b"
                    "31m"),
            "\\x9b31m");
  EXPECT_EQ(visible("\xc2\xa0"), "\xc2\xa0") << "a space that does not break is no control";
}

TEST(Visible, BytesThatAreNoUtf8AreShown) {
  EXPECT_EQ(visible("a\xff\x9b"
                    "b\xc3"),
            "a\\xff\\x9bb\\xc3");
  EXPECT_EQ(visible("\xc2"), "\\xc2");
  EXPECT_EQ(visible("\xc3\xbc\xff\xc3\xbc"), "\xc3\xbc\\xff\xc3\xbc");
}

TEST(Visible, NewlinesAreKeptWhereTheyAreOurs) {
  EXPECT_EQ(visible("a\nb\x1b", Newlines::Kept), "a\nb\\x1b");
}

}  // namespace
}  // namespace ciuic::core
