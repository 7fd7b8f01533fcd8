// SPDX-License-Identifier: MIT
#include "core/plugin/loading_pipeline.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plugin/private_folder.h"
#include "core/plugin/sha256.h"
#include "private_folders.h"

namespace ciuic::core {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
namespace fs = std::filesystem;

class Pipeline : public OwnCaches {
 protected:
  [[nodiscard]] static std::shared_ptr<LibraryFile> load(const std::string& path,
                                                         const LoadRules& rules = {}) {
    LoadingPipeline pipeline(rules);
    auto file = pipeline.examine(path);
    pipeline.admit({file});
    return file;
  }
  static bool is_mapped(const std::string& path) {
    return dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr;
  }
};

TEST_F(Pipeline, SoundPluginGoesThroughEveryStepAndIsNotMappedHere) {
  const auto file = load(broken("sound"));
  ASSERT_FALSE(file->refusal) << file->refusal->text();
  EXPECT_THAT(file->steps, ElementsAre("resolve", "trust", "hash", "quarantine", "note", "stage",
                                       "load", "query", "descriptor"));
  ASSERT_THAT(file->plugins, SizeIs(1));
  EXPECT_EQ(file->plugins[0]->name, "sound");
  EXPECT_FALSE(is_mapped(file->staged));
  EXPECT_FALSE(is_mapped(file->path));
}

TEST_F(Pipeline, SecondTimeNeedsNoChild) {
  const std::string path = broken("sound");
  EXPECT_FALSE(load(path)->is_from_cache);
  LoadingPipeline pipeline({});
  const auto file = pipeline.examine(path);
  pipeline.admit({file});
  EXPECT_TRUE(file->is_from_cache);
  EXPECT_EQ(pipeline.times().probed, 0u);
  EXPECT_THAT(file->plugins, SizeIs(1));
}

TEST_F(Pipeline, OtherContentOfTheSameNameIsLookedAtAnew) {
  const std::string path = broken("sound");
  (void)load(path);
  fs::remove(path);
  fs::copy_file(std::string(CIUIC_BROKEN_PLUGINS) + "/libstays_mapped.so", path);
  const auto file = load(path);
  EXPECT_FALSE(file->is_from_cache);
  EXPECT_EQ(file->plugins[0]->name, "stays_mapped");
}

TEST_F(Pipeline, ReloadableIsBelievedOnlyIfItLeaves) {
  const auto file = load(broken("stays_mapped"));
  ASSERT_FALSE(file->refusal) << file->refusal->text();
  EXPECT_TRUE(file->stays_resident);
  EXPECT_THAT(file->warnings, Contains(HasSubstr("it is not believed")));
  EXPECT_THAT(file->warnings, Contains(HasSubstr("GNU_UNIQUE")));
}

TEST_F(Pipeline, MissingFileIsRefusedAtResolve) {
  const auto file = load(folder.file("plugins/libnone.so"));
  ASSERT_TRUE(file->refusal);
  EXPECT_EQ(file->refusal->step, "resolve");
}

TEST_F(Pipeline, UntrustedFileIsRefusedAtTrust) {
  const std::string path = broken("sound");
  chmod(path.c_str(), 0666);
  const auto file = load(path);
  ASSERT_TRUE(file->refusal);
  EXPECT_EQ(file->refusal->step, "trust");
  LoadRules any;
  any.trust = Trust::Any;
  EXPECT_FALSE(load(path, any)->refusal);
}

TEST_F(Pipeline, WithoutANoteNothingOfItRuns) {
  const auto file = load(broken("without_note"));
  ASSERT_TRUE(file->refusal);
  EXPECT_EQ(file->refusal->step, "note");
  EXPECT_TRUE(file->staged.empty());
}

TEST_F(Pipeline, NoteThatLiesIsRefused) {
  const auto file = load(broken("lying_note"));
  ASSERT_TRUE(file->refusal);
  EXPECT_EQ(file->refusal->step, "descriptor");
  EXPECT_THAT(file->refusal->reason, AllOf(HasSubstr("1.0.0"), HasSubstr("2.0.0")));
}

TEST_F(Pipeline, LockRefusesOtherContentWithBothHashes) {
  const std::string path = broken("sound");
  LockFile lock;
  lock.add({"profiler", "sound", "1.0.0", "0.2", std::string(64, 'a'), ""});
  ASSERT_TRUE(replace_text(folder.file("ciuic.lock"), lock.text()));
  LoadRules rules;
  rules.lock = folder.file("ciuic.lock");
  const auto file = load(path, rules);
  ASSERT_TRUE(file->refusal);
  EXPECT_EQ(file->refusal->step, "hash");
  EXPECT_THAT(file->refusal->reason,
              AllOf(HasSubstr(std::string(64, 'a')), HasSubstr(sha256(bytes_of(path)))));
  EXPECT_TRUE(file->staged.empty()) << "it must not come near the loader";
}

TEST_F(Pipeline, LockThatNamesTheContentLetsItThrough) {
  const std::string path = broken("sound");
  LockFile lock;
  lock.add({"profiler", "sound", "1.0.0", "0.2", sha256(bytes_of(path)), ""});
  ASSERT_TRUE(replace_text(folder.file("ciuic.lock"), lock.text()));
  LoadRules rules;
  rules.lock = folder.file("ciuic.lock");
  EXPECT_FALSE(load(path, rules)->refusal);
}

TEST_F(Pipeline, CrashPutsTheContentIntoQuarantine) {
  const std::string path = broken("crash_in_constructor");
  const auto first = load(path);
  ASSERT_TRUE(first->refusal);
  EXPECT_EQ(first->refusal->step, "load");
  EXPECT_THAT(first->refusal->remedy, HasSubstr("quarantine remove"));
  const auto second = load(path);
  ASSERT_TRUE(second->refusal);
  EXPECT_EQ(second->refusal->step, "quarantine");
  EXPECT_THAT(second->refusal->reason, AllOf(HasSubstr("until"), HasSubstr("signal 6")));
  EXPECT_THAT(second->refusal->remedy, HasSubstr(second->sha256.substr(0, 12)));
  Quarantine(state_folder()).clear();
  EXPECT_EQ(load(path)->refusal->step, "load") << "lifted: it gets another try";
}

TEST_F(Pipeline, WhatAnotherProcessPutIntoQuarantineMeanwhileIsNotProbed) {
  LoadingPipeline pipeline({});
  const auto file = pipeline.examine(broken("hang_in_constructor"));
  ASSERT_FALSE(file->refusal);
  Quarantine(state_folder()).add(file->sha256, file->path, "load: it hung");
  pipeline.admit({file});
  ASSERT_TRUE(file->refusal);
  EXPECT_EQ(file->refusal->step, "quarantine");
  EXPECT_THAT(file->refusal->reason, HasSubstr("load: it hung"));
  EXPECT_EQ(pipeline.times().probed, 0u);
}

TEST_F(Pipeline, WhatCannotBeLookedAtIsNotCalledMissing) {
  EXPECT_THAT(load(folder.file("nothing.so"))->refusal->reason, HasSubstr("no such file"));
  const std::string too_long = folder.file(std::string(300, 'x') + ".so");
  EXPECT_THAT(load(too_long)->refusal->reason, HasSubstr("File name too long"));
  if (geteuid() == 0) {
    GTEST_SKIP() << "root may read everything";
  }
  const std::string path = broken("sound");
  fs::permissions(folder.file("plugins"), fs::perms::none);
  EXPECT_THAT(load(path)->refusal->reason, HasSubstr("Permission denied"));
  fs::permissions(folder.file("plugins"), fs::perms::owner_all);
}

TEST_F(Pipeline, FailureToLoadIsNotKept) {
  const std::string path = broken("undefined_symbol");
  EXPECT_EQ(load(path)->refusal->step, "load");
  EXPECT_EQ(load(path)->refusal->step, "load") << "neither from the cache nor in quarantine";
}

TEST_F(Pipeline, OneChildForAllThatAreNew) {
  LoadingPipeline pipeline({});
  const std::vector<std::shared_ptr<LibraryFile>> files{pipeline.examine(broken("sound")),
                                                        pipeline.examine(broken("stays_mapped")),
                                                        pipeline.examine(broken("other_abi"))};
  pipeline.admit(files);
  EXPECT_EQ(pipeline.times().probed, 2u);
  EXPECT_FALSE(files[0]->refusal);
  EXPECT_FALSE(files[1]->refusal);
  EXPECT_EQ(files[2]->refusal->step, "note");
}

TEST_F(Pipeline, OriginalMayGoOnceItIsStaged) {
  const std::string path = broken("sound");
  const auto file = load(path);
  ASSERT_FALSE(file->refusal);
  fs::resize_file(path, 100);
  fs::remove(path);
  EXPECT_EQ(file->library().descriptors().size(), 1u);
}

TEST_F(Pipeline, PrivateDependencyComesAlong) {
  const std::string path = broken("private_dependency");
  fs::create_directory(folder.file("plugins/lib"));
  fs::copy_file(std::string(CIUIC_BROKEN_PLUGINS) + "/lib/libciuic_test_dependency.so",
                folder.file("plugins/lib/libciuic_test_dependency.so"));
  const auto file = load(path);
  ASSERT_FALSE(file->refusal) << file->refusal->text();
  EXPECT_THAT(file->brings, ElementsAre(HasSubstr("libciuic_test_dependency.so")));
  fs::remove_all(folder.file("plugins"));
  EXPECT_EQ(file->library().descriptors().size(), 1u);
}

TEST_F(Pipeline, LockCoversWhatAPluginBringsAlong) {
  const std::string path = broken("private_dependency");
  fs::create_directory(folder.file("plugins/lib"));
  const std::string dependency = folder.file("plugins/lib/libciuic_test_dependency.so");
  fs::copy_file(std::string(CIUIC_BROKEN_PLUGINS) + "/lib/libciuic_test_dependency.so", dependency);
  const auto open = load(path);
  ASSERT_FALSE(open->refusal) << open->refusal->text();
  EXPECT_NE(open->bundle, open->sha256);
  const std::string name = open->plugins[0]->name;
  LoadRules rules;
  rules.lock = folder.file("ciuic.lock");
  const auto locked_with = [&](const std::string& bundle) {
    LockFile lock;
    lock.add({"profiler", name, "1.0.0", "0.2", open->sha256, "", bundle});
    EXPECT_TRUE(replace_text(rules.lock, lock.text()));
    return load(path, rules);
  };
  EXPECT_FALSE(locked_with(open->bundle)->refusal);
  const auto old = locked_with("");
  ASSERT_TRUE(old->refusal) << "a lock that says nothing of what is brought along";
  EXPECT_EQ(old->refusal->step, "hash");
  EXPECT_THAT(old->refusal->reason, AllOf(HasSubstr("brings none"), HasSubstr(dependency)));
  std::ofstream(dependency, std::ios::app) << "another build";
  const auto changed = locked_with(open->bundle);
  ASSERT_TRUE(changed->refusal);
  EXPECT_EQ(changed->refusal->step, "hash");
  EXPECT_THAT(changed->refusal->reason, HasSubstr(open->bundle));
}

TEST_F(Pipeline, UntrustedDependencyIsRefused) {
  const std::string path = broken("private_dependency");
  fs::create_directory(folder.file("plugins/lib"));
  const std::string dependency = folder.file("plugins/lib/libciuic_test_dependency.so");
  fs::copy_file(std::string(CIUIC_BROKEN_PLUGINS) + "/lib/libciuic_test_dependency.so", dependency);
  chmod(dependency.c_str(), 0666);
  const auto file = load(path);
  ASSERT_TRUE(file->refusal);
  EXPECT_EQ(file->refusal->step, "stage");
  EXPECT_THAT(file->refusal->reason, HasSubstr(dependency));
}

}  // namespace
}  // namespace ciuic::core
