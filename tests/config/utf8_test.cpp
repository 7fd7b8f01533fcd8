// SPDX-License-Identifier: MIT
#include "core/config/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

TEST(Utf8, TakesEveryLengthAtItsLimits) {
  for (const std::string text :
       {"", "plain", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(text));
    EXPECT_TRUE(is_utf8("1234567" + text + "12345678901"));
  }
}

TEST(Utf8, NamesTheFirstBadByte) {
  for (const std::string bad :
       {"\x80", "\xc0\xaf", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_EQ(first_invalid_utf8(bad), 0u);
    EXPECT_EQ(first_invalid_utf8("123456789\xc3\xa9" + bad + "tail"), 11u);
  }
}

}  // namespace
}  // namespace ciuic::core
