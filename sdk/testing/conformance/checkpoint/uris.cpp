// SPDX-License-Identifier: MIT
//
// What lies at a uri, and what must never be touched: open, remove, and names meant to do harm.
#include <algorithm>
#include <filesystem>

#include "checkpoint_tests.hpp"
#include "ranks.hpp"

namespace ciuic::testing::checkpoint {
namespace {

bool is_at(const std::string& path, const std::string& uri) {
  return path == uri || path == uri + "/" || path.compare(0, uri.size() + 1, uri + "/") == 0;
}

/// Fails when a path that was made, written or renamed lies outside of `folder`.
void require_inside(const IoPlan& plan, const std::string& folder, const std::string& what) {
  for (const IoCall& call : plan.log()) {
    const bool is_change = call.op == "create" || call.op == "make_directory" ||
                           call.op == "rename" || call.op == "remove";
    const size_t arrow = call.path.find(" -> ");
    const size_t target = arrow == std::string::npos ? 0 : arrow + 4;
    for (const std::string& path : {call.path.substr(0, arrow), call.path.substr(target)}) {
      require(!is_change || is_at(std::filesystem::path(path).lexically_normal(), folder),
              what + ": the plugin did \"" + call.op + " " + shown(call.path) +
                  "\", outside of the uri's folder");
    }
  }
}

}  // namespace

void open_nothing(const TestContext& context) {
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks ranks(context, files, plan);
  for (const std::string& uri : {std::string(kUri), std::string("/no/such/folder/step-1")}) {
    expect_error({CIUIC_NOT_FOUND}, "open of " + uri + ", where nothing is",
                 [&] { (void)ranks.rank().open(uri); });
  }
  ranks.finish();
}

void open_foreign(const TestContext& context) {
  MemoryFiles files;
  files.make_directory("/foreign/empty");
  files.set_content("/foreign/notes/readme.txt", "not a checkpoint\n");
  files.set_content("/foreign/other/manifest.xml", "<checkpoint/>");
  files.set_content("/foreign/other/data/0.part", std::string(100, 'x'));
  files.set_content("/foreign/image.png", "\x89PNG\r\n\x1a\n");
  files.set_content("/foreign/empty_file", "");
  const std::vector<std::string> before = files.tree();
  IoPlan plan;
  Ranks ranks(context, files, plan);
  for (const char* uri : {"/foreign/empty", "/foreign/notes", "/foreign/other",
                          "/foreign/image.png", "/foreign/empty_file"}) {
    expect_error({CIUIC_UNIMPLEMENTED},
                 std::string("open of ") + uri + ", which is no format of this plugin",
                 [&] { (void)ranks.rank().open(uri); });
  }
  require(files.tree() == before, "open changed the files that it looked at");
  ranks.finish();
}

void remove_one(const TestContext& context) {
  const State state = model_state(context.seed);
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks ranks(context, files, plan);
  ranks.save(kOldUri, 1, state);
  const std::vector<std::string> before = files.tree();
  ranks.save(kUri, 2, state);
  ranks.rank().remove(kUri);
  require(files.tree() == before,
          "after save and remove there are " + std::to_string(files.tree().size()) +
              " files and folders, before there were " + std::to_string(before.size()));
  expect_error({CIUIC_NOT_FOUND}, "open of a removed checkpoint",
               [&] { (void)ranks.rank().open(kUri); });
  files.power_cut(PowerCut::OnlySynced);
  require_saved(context, files, kOldUri, state, "beside a removed checkpoint");
  const Finding found = look(context, files, kUri);
  require(found.kind != Finding::Kind::Whole || found.state == state,
          "after remove and a power cut the uri holds other data");
  ranks.save(kUri, 2, state);
  require_saved(context, files, kUri, state, "saved again after remove");
}

void odd_uris(const TestContext& context) {
  const State state = model_state(context.seed);
  for (const std::string& uri :
       {std::string(), std::string("/"), std::string("/runs/a/x\0y", 11),
        std::string("/runs/a/") + std::string(5000, 'u'), std::string("/runs/a/file/below")}) {
    MemoryFiles files;
    files.set_content("/runs/a/file", "in the way");
    const std::vector<std::string> before = files.tree();
    IoPlan plan;
    Ranks ranks(context, files, plan);
    const std::string what = "uri " + shown(uri);
    require(ranks.try_save(uri, 1, state).has_value(), "a save to the " + what + " succeeded");
    require(files.tree() == before, "a failed save to the " + what + " left files behind");
    try {
      (void)ranks.rank().open(uri);
      throw CheckFailed("open of the " + what + " succeeded");
    } catch (const Error&) {  // any clean status
    }
    ranks.finish();
  }
}

void hostile_keys(const TestContext& context) {
  std::vector<std::string> names = {
      "..",   ".",    "../x", "../../../x",   "/etc/x",        "a/../../../../x",
      "/",    "//x",  "x/",   "__metadata__", "manifest.json", "index.json",
      "a\nb", "a\tb", "\x7f", "\xff\xfe",     "CON",           ".hidden",
      "-rf"};
  names.emplace_back("a\0b", 3);
  names.emplace_back(5000, 'k');
  names.emplace_back(70000, 'k');
  for (const std::string& name : names) {
    for (const char* prefix : {"value/", ""}) {
      const std::string key = prefix + name;
      State state = model_state(context.seed);
      state[key] = random_tensor(kF32, {3}, context.seed);
      MemoryFiles files;
      files.set_content("/x", "must stay");
      files.set_content("/runs/x", "must stay");
      files.set_content("/etc/x", "must stay");
      files.make_directory(kFolder);
      const std::vector<std::string> before = files.tree();
      IoPlan plan;
      {
        Ranks ranks(context, files, plan);
        if (!ranks.try_save(kUri, 1, state)) {
          require_saved(context, files, kUri, state, "the key " + shown(key) + " was accepted");
        }
      }
      require_inside(plan, kFolder, "save of the key " + shown(key));
      std::vector<std::string> rest = files.tree();
      rest.erase(std::remove_if(rest.begin(), rest.end(),
                                [](const std::string& path) { return is_at(path, kUri); }),
                 rest.end());
      require(rest == before, "save of the key " + shown(key) + " left files outside the uri");
      for (const char* path : {"/x", "/runs/x", "/etc/x"}) {
        require(files.content(path) == "must stay",
                "save of the key " + shown(key) + " wrote to " + path);
      }
    }
  }
}

}  // namespace ciuic::testing::checkpoint
