// SPDX-License-Identifier: MIT
#include "core/data/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

using Kind = DocumentPart::Kind;
using testing::HasSubstr;

std::string failure_of(const std::string& line) {
  try {
    parse_document(line, "a.jsonl:7");
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::Usage);
    return failure.what();
  }
  return "no failure";
}

TEST(JsonLines, TextIsTrainedOn) {
  const auto parts = parse_document(R"({"text": "caf\u00e9", "id": 7})", "a");
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].text, "café");
  EXPECT_TRUE(parts[0].is_target);
  EXPECT_TRUE(parse_document(R"({"text": ""})", "a").empty());
}

TEST(JsonLines, OnlyAnAnswerIsTrainedOn) {
  const auto parts = parse_document(R"({"prompt": "2+2=", "completion": "4"})", "a");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_FALSE(parts[0].is_target);
  EXPECT_TRUE(parts[1].is_target);
}

TEST(JsonLines, AConversationIsInDeepSeeksForm) {
  const auto parts = parse_document(
      R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"},
          {"role": "assistant", "content": "a"}, {"role": "user", "content": "r"}]})",
      "a");
  const std::vector<std::pair<Kind, bool>> expected{
      {Kind::Bos, false},  {Kind::Text, false},  // system
      {Kind::User, false}, {Kind::Text, false}, {Kind::Assistant, false}, {Kind::Text, true},
      {Kind::Eos, true},   {Kind::User, false}, {Kind::Text, false}};
  ASSERT_EQ(parts.size(), expected.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].kind, expected[i].first) << i;
    EXPECT_EQ(parts[i].is_target, expected[i].second) << i;
  }
}

TEST(JsonLines, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_EQ(failure_of("{\"text\": "), "a.jsonl:7: no JSON at byte 10 of the line");
  EXPECT_EQ(failure_of("[1]"), "a.jsonl:7: expected an object");
  EXPECT_THAT(failure_of("{}"), HasSubstr("expected one of \"text\""));
  EXPECT_THAT(failure_of(R"({"text": "a", "messages": []})"), HasSubstr("expected one of"));
  EXPECT_THAT(failure_of(R"({"text": 7})"), HasSubstr("a string as \"text\""));
  EXPECT_THAT(failure_of(R"({"prompt": "a"})"), HasSubstr("a string as \"completion\""));
  EXPECT_THAT(failure_of(R"({"messages": [{"role": "tool", "content": "x"}]})"),
              HasSubstr("has the role \"tool\""));
  EXPECT_THAT(failure_of(R"({"messages": [{"role": "user", "content": "x"}]})"),
              HasSubstr("nothing is trained on"));
  EXPECT_THAT(failure_of("{\"text\": \"\xff\"}"), HasSubstr("no JSON"));
  EXPECT_THAT(failure_of(std::string(100000, '[')), HasSubstr("no JSON"));
}

}  // namespace
}  // namespace ciuic::core
