// SPDX-License-Identifier: MIT
#include "core/plugin/lock_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log/failure.h"
#include "private_folders.h"

namespace ciuic::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kA(64, 'a');
const std::string kB(64, 'b');

LockFile parse(const std::string& text, std::vector<Problem>& problems) {
  return LockFile::parse(text, "ciuic.lock", problems);
}

std::string problems_of(const std::string& text) {
  std::vector<Problem> problems;
  (void)parse(text, problems);
  return format(problems);
}

std::string entry(const std::string& kind, const std::string& name, const std::string& sha256) {
  return "[[plugin]]\nkind = \"" + kind + "\"\nname = \"" + name + "\"\nsha256 = \"" + sha256 +
         "\"\n";
}

TEST(LockFile, ReadsBackWhatItWrites) {
  LockFile lock;
  lock.add({"optimizer", "adamw", "1.0.0", "0.2", kA, "build/plugins/libadamw.so"});
  lock.add({"communicator", "gloo", "1.1.0", "0.2", kB, "with \"quotes\".so"});
  std::vector<Problem> problems;
  const LockFile again = parse(lock.text(), problems);
  EXPECT_THAT(problems, IsEmpty());
  ASSERT_THAT(again.plugins(), SizeIs(2));
  EXPECT_EQ(again.text(), lock.text());
  EXPECT_EQ(again.find("communicator", "gloo")->file, "with \"quotes\".so");
  EXPECT_EQ(again.plugins()[0].name, "gloo") << "sorted by kind";
}

TEST(LockFile, RefusesAnotherContentWithBothHashes) {
  std::vector<Problem> problems;
  const LockFile lock = parse(entry("optimizer", "adamw", kA), problems);
  EXPECT_EQ(lock.problem_with("optimizer", "adamw", kA), "");
  EXPECT_THAT(lock.problem_with("optimizer", "adamw", kB), AllOf(HasSubstr(kA), HasSubstr(kB)));
}

TEST(LockFile, RefusesWhatItDoesNotName) {
  std::vector<Problem> problems;
  const LockFile lock = parse(entry("optimizer", "adamw", kA), problems);
  EXPECT_THAT(lock.problem_with("precision", "adamw", kA),
              AllOf(HasSubstr("does not name precision adamw"), HasSubstr(kA)));
}

TEST(LockFile, SaysEveryProblemWithItsLine) {
  const std::string text = entry("optimizer", "adamw", "abc") + entry("driver", "x", kA) +
                           "[[plugin]]\nname = \"y\"\nsha265 = \"" + kA + "\"\nkind = 3\n" +
                           entry("optimizer", "a b", kA);
  EXPECT_THAT(problems_of(text),
              AllOf(HasSubstr("ciuic.lock:1: plugin.sha256: got \"abc\""), HasSubstr("seven kinds"),
                    HasSubstr("did you mean sha256"), HasSubstr("plugin.kind: got 3"),
                    HasSubstr("plugin's name")));
}

TEST(LockFile, TwiceLockedIsAProblem) {
  EXPECT_THAT(problems_of(entry("optimizer", "adamw", kA) + entry("optimizer", "adamw", kB)),
              HasSubstr("locked twice"));
}

TEST(LockFile, EmptyAndForeignFilesAreNoLocks) {
  EXPECT_THAT(problems_of(""), HasSubstr("locks no plugin"));
  EXPECT_THAT(problems_of("[run]\nsteps = 3\n"), HasSubstr("no part of a lock"));
  EXPECT_THAT(problems_of("plugin = 3\n"), HasSubstr("no part of a lock"));
  EXPECT_THAT(problems_of("plugin = [3]\n"), HasSubstr("expected a table"));
  EXPECT_THAT(problems_of("\x7f"
                          "ELF\x02\x01"),
              HasSubstr("ciuic.lock:1"));
}

TEST(LockFile, WhatAPluginBringsAlongIsLockedToo) {
  std::vector<Problem> problems;
  const LockFile with = parse(
      "format = 2\n" + entry("optimizer", "adamw", kA) + "bundle = \"" + kB + "\"\n", problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(with.bundle_problem("optimizer", "adamw", kB), "");
  EXPECT_THAT(with.bundle_problem("optimizer", "adamw", kA), AllOf(HasSubstr(kA), HasSubstr(kB)));
  EXPECT_EQ(parse(with.text(), problems).plugins()[0].bundle, kB);
}

TEST(LockFile, AnEntryWithoutABundleBringsNothingAlong) {
  std::vector<Problem> problems;
  for (const char* format : {"", "format = 1\n", "format = 2\n"}) {
    const LockFile without = parse(format + entry("optimizer", "adamw", kA), problems);
    EXPECT_EQ(without.bundle_problem("optimizer", "adamw", kA), "");
    EXPECT_THAT(without.bundle_problem("optimizer", "adamw", kB), HasSubstr("brings none"));
  }
  EXPECT_THAT(problems, IsEmpty());
}

TEST(LockFile, ANewerFormatIsRefused) {
  EXPECT_THAT(problems_of("format = 3\n" + entry("optimizer", "adamw", kA)),
              HasSubstr("format: got 3, expected 1 to 2"));
  EXPECT_THAT(problems_of("format = \"2\"\n" + entry("optimizer", "adamw", kA)),
              HasSubstr("format: got"));
  EXPECT_THAT(problems_of(entry("optimizer", "adamw", kA) + "bundle = \"x\"\n"),
              HasSubstr("plugin.bundle: got \"x\""));
}

TEST(LockFile, MissingFileIsAFailureOfUsage) {
  try {
    (void)LockFile::read("/nowhere/ciuic.lock");
    FAIL() << "it was read";
  } catch (const Failure& f) {
    EXPECT_EQ(f.code(), ExitCode::Usage);
    EXPECT_THAT(format(f), HasSubstr("/nowhere/ciuic.lock"));
  }
}

}  // namespace
}  // namespace ciuic::core
