// SPDX-License-Identifier: MIT
#include "core/config/toml_reader.h"

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

Node read(const std::string& text) {
  std::vector<Problem> problems;
  Node root = parse_toml(text, "x.toml", problems);
  EXPECT_TRUE(problems.empty()) << format(problems);
  return root;
}

TEST(TomlReader, KeepsTypesAndLines) {
  const Node root =
      read("a = 1\nb = 1.5\nc = true\nd = \"x\"\ne = [1,\n 2]\n\n[t.u]\nf = 2024-01-01\n");
  EXPECT_EQ(*root.find("a")->integer(), 1);
  EXPECT_EQ(*root.find("b")->real(), 1.5);
  EXPECT_TRUE(*root.find("c")->boolean());
  EXPECT_EQ(*root.find("d")->string(), "x");
  EXPECT_EQ(root.find("e")->where.line, 5);
  EXPECT_EQ((*root.find("e")->list())[1].where.line, 6);
  EXPECT_EQ(root.find("t")->find("u")->where.line, 8);
  EXPECT_EQ(root.find("t")->find("u")->find("f")->where.line, 9);
  EXPECT_EQ(root.find("t")->find("u")->find("f")->kind_name(), "a date");
  EXPECT_EQ(root.find("nothing"), nullptr);
}

TEST(TomlReader, NodesWriteTomlThatReadsBack) {
  const std::string text =
      R"(v = [1, 1.5, 1e300, 1e-8, -0.0, true, "a\"\\\n\u0001", { "k k" = [], b = {} }])";
  const Node once = read(text);
  const Node twice = read("v = " + once.find("v")->text());
  EXPECT_EQ(once.find("v")->text(), twice.find("v")->text());
}

TEST(TomlReader, FloatsAreTheShortestThatReadBack) {
  EXPECT_EQ(toml_float(0.1), "0.1");
  EXPECT_EQ(toml_float(1), "1.0");
  EXPECT_EQ(toml_float(3e-4), "3e-4");
  EXPECT_EQ(toml_float(1e22), "1e+22");
  for (double value : {0.1, 1.0 / 3, 3e-4, 1e22, 5e-324, 1.7976931348623157e308}) {
    EXPECT_EQ(*read("v = " + toml_float(value)).find("v")->real(), value);
  }
}

TEST(TomlReader, OverridesThatAreNoTomlAreBareStrings) {
  Node root = read("");
  std::vector<Problem> problems;
  const std::vector<std::string> overrides{
      "a.b=gloo",       "a.c=1\nd=2", "a.d=\"quoted\"", "a.e=[1, 2]",
      "a.f=2024-01-01", "a.g=",       "a.h=x=y"};
  apply_overrides(root, overrides, problems);
  EXPECT_TRUE(problems.empty()) << format(problems);
  const Node* a = root.find("a");
  EXPECT_EQ(*a->find("b")->string(), "gloo");
  EXPECT_EQ(*a->find("c")->string(), "1\nd=2");
  EXPECT_EQ(*a->find("d")->string(), "quoted");
  EXPECT_EQ(a->find("e")->list()->size(), 2u);
  EXPECT_EQ(*a->find("f")->string(), "2024-01-01");
  EXPECT_EQ(*a->find("g")->string(), "");
  EXPECT_EQ(*a->find("h")->string(), "x=y");
  EXPECT_TRUE(a->find("b")->where.is_override());
}

TEST(Node, SetFindEraseKeepTheOrder) {
  Node table{Node::Table{}, {}, {}};
  for (const char* key : {"c", "a", "b"}) {
    table.set(key, {std::string(key), {}, {}});
  }
  table.set("b", {int64_t{2}, {}, {}});
  EXPECT_EQ(table.text(), "{ a = \"a\", b = 2, c = \"c\" }");
  table.erase("a");
  EXPECT_EQ(table.find("a"), nullptr);
  EXPECT_EQ(*table.find("b")->integer(), 2);
}

}  // namespace
}  // namespace ciuic::core
