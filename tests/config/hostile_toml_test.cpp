// SPDX-License-Identifier: MIT
//
// A run file from a stranger ends in problems, never in a crash.
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/config_text.h"
#include "core/config/toml_reader.h"
#include "tests/config/minimal_config.h"

namespace ciuic::core {
namespace {

using testing::HasSubstr;

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) {
    out += text;
  }
  return out;
}

TEST(HostileToml, DeepNestingIsRefused) {
  constexpr int kDeep = 200'000;
  const std::string dots = repeated("a.", kDeep) + "a";
  for (const std::string& text :
       {"x = " + repeated("[", kDeep), "x = " + repeated("{a=", kDeep), "[" + dots + "]",
        dots + " = 1", "x = {" + dots + " = 1}", "x = '''it's''' # '\n[" + dots + "]",
        "x = \"\"\"a\"\"\"\"\"\n" + dots + " = 1", "'" + std::string("q") + "'." + dots + " = 1",
        "[" + dots + "]\nbroken", "x = \"a\\\"\"\n" + dots + "=",
        "\"a\" . " + repeated("'b' . ", kDeep) + "c = 1"}) {
    const Loaded loaded = parse(text);
    ASSERT_EQ(loaded.problems.size(), 1u) << text.substr(0, 30);
  }
  EXPECT_THAT(problems_of(parse("\nx = " + repeated("[", kDeep))),
              HasSubstr("x.toml:2: nested deeper than 32 levels"));
}

TEST(HostileToml, NestingInStringsAndCommentsIsNone) {
  const std::string many = repeated("[{a.", 100);
  const Loaded loaded = parse(kMinimal + "# " + many + "\n[run2]\n" + "a = '" + many +
                              "'\nb = \"\\\"" + many + "\"\nc = '''\n" + many +
                              "'\n'''\nd = \"\"\"\\\"" + many + "\n\\\n" + many + "\"\"\"\n");
  EXPECT_EQ(problems_of(loaded), "x.toml:8: run2 is no table; did you mean run?");
}

TEST(HostileToml, OddBytesAreProblems) {
  using namespace std::string_literals;
  for (const std::string& text :
       {"\0"s, "a = \"\0\""s, "a = \"\xff\xfe\""s, "\xc0\xaf"s, "a = \"\xed\xa0\x80\""s, "\r"s,
        "a = 1\rb = 2"s, "\x1b[31m"s, "a = \"\\ud800\""s, "\xef\xbb\xbf[run"s}) {
    EXPECT_FALSE(parse(text).ok());
  }
}

TEST(HostileToml, HugeNumbersAreProblems) {
  for (const std::string value :
       {"99999999999999999999", "-99999999999999999999", "0xffffffffffffffffff", "9e999",
        "9223372036854775807", "-9223372036854775808", "\"99999999999999999999\"",
        "\"9223372036854775807T\"", "\"1.0000000000000000000000001K\""}) {
    EXPECT_FALSE(parse(kMinimal + "sequence_tokens = " + value).ok()) << value;
  }
}

TEST(HostileToml, ATooLongFileIsRefused) {
  EXPECT_THAT(problems_of(parse(std::string(kMaxConfigBytes + 1, '\n'))), HasSubstr("has at most"));
  EXPECT_THAT(problems_of(load_config("/dev/zero")), HasSubstr("is a device"));
  EXPECT_THAT(problems_of(load_config("/")), HasSubstr("is a folder"));
}

TEST(HostileToml, LongNamesCostLittle) {
  const std::string name(100'000, 'a');
  EXPECT_EQ(parse(kMinimal + "[run2." + name + "]\n[" + name + "]\n").problems.size(), 2u);
}

// Fixed seed; every mutation of a good file loads or is refused, and a good one resolves to a good
// one.
TEST(HostileToml, MutatedFilesNeverCrash) {
  const std::string good = reference_toml() + "\n[optimizer.adamw]\na = [1, { b = \"x\" }]\n";
  const std::string alphabet = "[]{}\"'=.,#\n\\ a1-_\x80\xff";
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (int edit = 0; edit < 1 + round % 4; ++edit) {
      const size_t at = random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          text[at] = c;
          break;
        case 1:
          text.insert(at, 1, c);
          break;
        default:
          text.erase(at, 1 + random() % 8);
      }
    }
    const Loaded loaded = parse(text);
    if (loaded.ok()) {
      const Loaded again = parse(resolved_toml(loaded.config));
      ASSERT_TRUE(again.ok()) << problems_of(again) << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace ciuic::core
