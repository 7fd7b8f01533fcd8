// SPDX-License-Identifier: MIT
#include "core/generate/streamed_text.h"

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

const std::string kReplacement = "\xEF\xBF\xBD";

// What is shown after each byte, separated by '|', and then at the end.
std::string shown_by_byte(StreamedText text, const std::string& bytes) {
  std::string all;
  for (const char c : bytes) {
    all += text.push(std::string(1, c)) + "|";
  }
  return all + text.finish();
}

TEST(StreamedText, ShowsACharacterWhenItIsComplete) {
  EXPECT_EQ(shown_by_byte(StreamedText(), "a\xC3\xBC"), "a||\xC3\xBC|");
  EXPECT_EQ(shown_by_byte(StreamedText(), "\xF0\x9F\x99\x82!"), "|||\xF0\x9F\x99\x82|!|");
}

TEST(StreamedText, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(shown_by_byte(StreamedText(), "\x80x"), kReplacement + "|x|");
  EXPECT_EQ(shown_by_byte(StreamedText(), "\xC3x"), "|" + kReplacement + "x|");
  EXPECT_EQ(shown_by_byte(StreamedText(), "\xE2\x82"), "||" + kReplacement + kReplacement);
}

TEST(StreamedText, EndsBeforeAStopText) {
  StreamedText text({"END", "\n\n"});
  EXPECT_EQ(text.push("one EN"), "one ");
  EXPECT_EQ(text.push("T EN"), "ENT ");
  EXPECT_FALSE(text.has_stopped());
  EXPECT_EQ(text.push("D and more"), "");
  EXPECT_TRUE(text.has_stopped());
  EXPECT_EQ(text.finish(), "");
  EXPECT_EQ(text.push("ignored"), "");
}

TEST(StreamedText, ShowsWhatOnlyLookedLikeAStopText) {
  StreamedText text({"aab"});
  EXPECT_EQ(text.push("xaa"), "x");
  EXPECT_EQ(text.push("a"), "a");
  EXPECT_EQ(text.finish(), "aa");
}

TEST(StreamedText, TheFirstOfTwoStopTextsCounts) {
  StreamedText text({"later", "now"});
  EXPECT_EQ(text.push("go now or later"), "");
  EXPECT_EQ(text.finish(), "go ");
}

TEST(StreamedText, AStopTextMayBeOfManyBytes) {
  StreamedText text({"\xC3\xBC"});
  EXPECT_EQ(text.push("a\xC3"), "a");
  EXPECT_EQ(text.push("\xBC"), "");
  EXPECT_TRUE(text.has_stopped());
  StreamedText other({"\xC3\xBC"});
  EXPECT_EQ(other.push("\xC3"), "");
  EXPECT_EQ(other.push("\xA4"), "\xC3\xA4");
}

}  // namespace
}  // namespace ciuic::core
