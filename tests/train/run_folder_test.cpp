// SPDX-License-Identifier: MIT
#include "core/train/run_folder.h"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log/failure.h"
#include "tests/temporary_folder.h"

namespace ciuic::core {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(RunFolder, IsRefusedWhileItIsInUse) {
  const TemporaryFolder folder;
  const std::string path = folder.file("run");
  const RunFolder held = RunFolder::claim(path, false);
  try {
    const RunFolder second = RunFolder::claim(path, false);
    FAIL() << "claimed twice";
  } catch (const Failure& f) {
    EXPECT_EQ(f.code(), ExitCode::Usage);
    EXPECT_THAT(f.what(), HasSubstr(std::to_string(getpid())));
  }
}

TEST(RunFolder, ALockOfADeadRunIsNone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("run");
  { const RunFolder ended = RunFolder::claim(path, false); }
  EXPECT_NO_THROW(RunFolder::claim(path, false));
}

TEST(RunFolder, AfreshMovesTheOldRunAside) {
  const TemporaryFolder folder;
  const std::string path = folder.file("run");
  for (const char* expected : {"", ".1", ".2"}) {
    const RunFolder run = RunFolder::claim(path, true);
    EXPECT_EQ(run.moved_to(), *expected == '\0' ? "" : path + expected);
    folder.write("run/metrics.jsonl", expected);
  }
  EXPECT_EQ(read_text(path + ".1/metrics.jsonl"), "");
  EXPECT_EQ(read_text(path + ".2/metrics.jsonl"), ".1");
}

TEST(RunFolder, AfreshDoesNotMoveALivingRun) {
  const TemporaryFolder folder;
  const std::string path = folder.file("run");
  const RunFolder held = RunFolder::claim(path, false);
  folder.write("run/metrics.jsonl", "x");
  EXPECT_THROW(RunFolder::claim(path, true), Failure);
  EXPECT_EQ(read_text(path + "/metrics.jsonl"), "x");
  EXPECT_FALSE(fs::exists(path + ".1"));
}

TEST(RunFolder, CheckpointsComeNewestFirst) {
  const TemporaryFolder folder;
  const RunFolder run = RunFolder::claim(folder.file("run"), false);
  for (const uint64_t step : {5u, 100u, 20u}) {
    fs::create_directories(run.checkpoint_of_step(step));
  }
  fs::create_directories(run.checkpoints() + "/step-00000200.partial");
  fs::create_directories(run.checkpoints() + "/elsewhere");
  const auto all = checkpoints_in(run.path());
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].first, 100u);
  EXPECT_EQ(all[2].first, 5u);
  EXPECT_EQ(fs::path(all[0].second).filename(), "step-00000100");
}

TEST(RunFolder, UnfinishedCheckpointsAreSweptAndFinishedOnesStay) {
  const TemporaryFolder folder;
  const RunFolder run = RunFolder::claim(folder.file("run"), false);
  for (const char* name :
       {"step-00000001", "step-00000002.partial", "step-00000001.removed", "mine.partial"}) {
    fs::create_directories(run.checkpoints() + "/" + name);
  }
  EXPECT_EQ(sweep_unfinished(run).size(), 2u);
  EXPECT_TRUE(fs::exists(run.checkpoint_of_step(1)));
  EXPECT_TRUE(fs::exists(run.checkpoints() + "/mine.partial"));
  EXPECT_FALSE(fs::exists(run.checkpoints() + "/step-00000002.partial"));
}

TEST(RunFolder, ALinkedOutputKeepsItsLink) {
  const TemporaryFolder folder;
  fs::create_directories(folder.file("disk/run"));
  folder.write("disk/run/metrics.jsonl", "old");
  fs::create_directory_symlink(folder.file("disk/run"), folder.file("link"));
  const RunFolder run = RunFolder::claim(folder.file("link"), true);
  EXPECT_TRUE(fs::is_symlink(folder.file("link")));
  EXPECT_EQ(read_text(folder.file("disk/run.1/metrics.jsonl")), "old");
}

TEST(RunFolder, LaterStepsAreSetAsideAndNothingIsDeleted) {
  const TemporaryFolder folder;
  const RunFolder run = RunFolder::claim(folder.file("run"), false);
  for (int round = 0; round < 2; ++round) {
    for (const uint64_t step : {10u, 20u, 30u}) {
      fs::create_directories(run.checkpoint_of_step(step));
    }
    EXPECT_EQ(set_aside_above(run, 10).size(), 2u);
    ASSERT_EQ(checkpoints_in(run.path()).size(), 1u);
    EXPECT_EQ(checkpoints_in(run.path())[0].first, 10u);
  }
  EXPECT_TRUE(fs::exists(run.checkpoints() + "/abandoned-step-00000030"));
  EXPECT_TRUE(fs::exists(run.checkpoints() + "/abandoned-step-00000030.1"));
}

TEST(ResolveModelPath, ARunsFolderStandsForItsLatestCheckpoint) {
  const TemporaryFolder folder;
  const RunFolder run = RunFolder::claim(folder.file("run"), false);
  EXPECT_THROW((void)resolve_model_path(run.path()), Failure);
  fs::create_directories(run.checkpoint_of_step(1));
  fs::create_directories(run.checkpoint_of_step(2));
  EXPECT_EQ(resolve_model_path(run.path() + "/"), run.checkpoint_of_step(2));
  replace_file(run.checkpoints() + "/latest", "step-00000001\n");
  EXPECT_EQ(resolve_model_path(run.path()), run.checkpoint_of_step(1));
  EXPECT_EQ(resolve_model_path(run.checkpoints() + "/latest"), run.checkpoint_of_step(1));
  replace_file(run.checkpoints() + "/latest", "../../../etc\n");  // a hint, never trusted alone
  EXPECT_EQ(resolve_model_path(run.path()), run.checkpoint_of_step(2));
  EXPECT_EQ(resolve_model_path("/some/hf/folder"), "/some/hf/folder");
  fs::create_directories(folder.file("other/checkpoints/latest"));  // somebody else's layout
  EXPECT_EQ(resolve_model_path(folder.file("other/checkpoints/latest")),
            folder.file("other/checkpoints/latest"));
  EXPECT_EQ(resolve_model_path("/none/checkpoints/latest"), "/none/checkpoints/latest");
}

TEST(ReplaceFile, LeavesNoPartialFile) {
  const TemporaryFolder folder;
  replace_file(folder.file("a"), "one");
  replace_file(folder.file("a"), "two");
  EXPECT_EQ(read_text(folder.file("a")), "two");
  EXPECT_FALSE(fs::exists(folder.file("a.partial")));
  EXPECT_THROW(replace_file(folder.file("no/such/folder"), "x"), Failure);
}

}  // namespace
}  // namespace ciuic::core
