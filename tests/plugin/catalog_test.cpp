// SPDX-License-Identifier: MIT
#include "core/plugin/catalog.h"

#include <filesystem>
#include <fstream>
#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/log/failure.h"
#include "private_folders.h"

namespace ciuic::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kPlugins = std::string(CIUIC_BUILD_DIR) + "/plugins";

std::string text_of(const Failure& f) { return format(f); }

template <typename Call>
Failure failure_of(Call&& call) {
  try {
    call();
  } catch (const Failure& f) {
    return f;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Failure(ExitCode::Done, "");
}

using CatalogTest = OwnCaches;

TEST_F(CatalogTest, FindsByKindAndName) {
  const Catalog catalog({kPlugins});
  const FoundPlugin found = catalog.find(CIUIC_KIND_OPTIMIZER, "adamw");
  EXPECT_EQ(found.descriptor->name, "adamw");
  EXPECT_EQ(found.path, kPlugins + "/libadamw.so");
}

TEST_F(CatalogTest, NamesDecideAndFileNamesDoNot) {
  fs::copy_file(kPlugins + "/libadamw.so", folder.file("plugins") + "/libsomething_else.so");
  EXPECT_EQ(Catalog({folder.file("plugins")}).find(CIUIC_KIND_OPTIMIZER, "adamw").path,
            folder.file("plugins") + "/libsomething_else.so");
}

TEST_F(CatalogTest, NotFoundListsPathsAndPluginsOfThatKind) {
  const Catalog catalog({"/nowhere/at/all", kPlugins});
  const Failure f = failure_of([&] { (void)catalog.find(CIUIC_KIND_OPTIMIZER, "adamv"); });
  EXPECT_EQ(f.code(), ExitCode::Plugin);
  EXPECT_THAT(text_of(f), AllOf(HasSubstr("\"adamv\""), HasSubstr("/nowhere/at/all (not a folder)"),
                                HasSubstr(kPlugins), HasSubstr("there are: adamw")));
}

TEST_F(CatalogTest, NameThatIsAPathFindsNothing) {
  const Catalog catalog({kPlugins});
  const Failure f =
      failure_of([&] { (void)catalog.find(CIUIC_KIND_OPTIMIZER, "../plugins/libadamw"); });
  EXPECT_EQ(f.code(), ExitCode::Plugin);
}

TEST_F(CatalogTest, FirstFolderWinsAndTheOtherIsShadowed) {
  fs::copy_file(kPlugins + "/libadamw.so", folder.file("plugins") + "/libadamw.so");
  const Catalog catalog({folder.file("plugins"), kPlugins});
  EXPECT_EQ(catalog.find(CIUIC_KIND_OPTIMIZER, "adamw").path,
            folder.file("plugins") + "/libadamw.so");
  int shadowed = 0;
  for (const FoundPlugin& p : catalog.list().plugins) {
    shadowed += p.shadowed ? 1 : 0;
  }
  EXPECT_EQ(shadowed, 1);
}

TEST_F(CatalogTest, EnvironmentComesAfterTheConfiguration) {
  setenv("CIUIC_PLUGIN_PATH", "/from/environment:/second", 1);
  const std::vector<std::string> path = Catalog::search_path({"/configured"});
  unsetenv("CIUIC_PLUGIN_PATH");
  ASSERT_GE(path.size(), 3u);
  EXPECT_EQ(path[0], "/configured");
  EXPECT_EQ(path[1], "/from/environment");
  EXPECT_EQ(path[2], "/second");
}

struct Broken {
  const char* file;
  const char* reason;
};

class BrokenPlugin : public OwnCaches, public ::testing::WithParamInterface<Broken> {};

TEST_P(BrokenPlugin, IsRefusedWithItsReason) {
  const std::string name = GetParam().file;
  const std::string source = std::string(CIUIC_BROKEN_PLUGINS) + "/lib" + name + ".so";
  fs::copy_file(source, folder.file("plugins") + "/lib" + name + ".so");
  const Catalog catalog({folder.file("plugins")});
  const Listing listing = catalog.list();
  EXPECT_TRUE(listing.plugins.empty());
  ASSERT_EQ(listing.refused.size(), 1u);
  EXPECT_THAT(listing.refused[0].reason, HasSubstr(GetParam().reason));
  const Failure f = failure_of([&] { (void)catalog.find(CIUIC_KIND_PROFILER, name); });
  EXPECT_EQ(f.code(), ExitCode::Plugin);
  EXPECT_THAT(text_of(f), AllOf(HasSubstr(GetParam().reason), HasSubstr(folder.file("plugins"))));
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenPlugin,
    ::testing::Values(Broken{"no_symbol", "lacks the symbol ciuic_plugin_query"},
                      Broken{"without_note", "note: it has no note .note.ciuic"},
                      Broken{"other_abi", "plugin ABI 0.99, this host has"},
                      Broken{"missing_function", "is missing, and it is required"},
                      Broken{"undefined_symbol", "ciuic_test_defined_nowhere"}),
    [](const auto& broken) { return broken.param.file; });

TEST_F(CatalogTest, TextFileIsRefused) {
  std::ofstream(folder.file("plugins") + "/libgloo.so") << "I am no library\n";
  const Failure f = failure_of(
      [&] { (void)Catalog({folder.file("plugins")}).find(CIUIC_KIND_COMMUNICATOR, "gloo"); });
  EXPECT_EQ(f.code(), ExitCode::Plugin);
  EXPECT_THAT(text_of(f), HasSubstr("no ELF header"));
}

TEST_F(CatalogTest, TruncatedLibraryIsRefused) {
  const std::string file = folder.file("plugins") + "/libadamw.so";
  fs::copy_file(kPlugins + "/libadamw.so", file);
  fs::resize_file(file, 3000);
  EXPECT_EQ(failure_of([&] {
              (void)Catalog({folder.file("plugins")}).find(CIUIC_KIND_OPTIMIZER, "adamw");
            }).code(),
            ExitCode::Plugin);
}

TEST_F(CatalogTest, WithoutFoldersListsNothing) {
  EXPECT_TRUE(Catalog({}).list().plugins.empty());
  EXPECT_EQ(failure_of([] { (void)Catalog({}).find(CIUIC_KIND_SHARDING, "ddp"); }).code(),
            ExitCode::Plugin);
}

}  // namespace
}  // namespace ciuic::core
