// SPDX-License-Identifier: MIT
//
// begin, put, commit and close.
#include <thread>

#include "checkpoint_tests.hpp"
#include "ranks.hpp"

namespace ciuic::testing::checkpoint {
namespace {

/// `body` in a thread of its own; its exception here.
void in_other_thread(const std::function<void()>& body) {
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      body();
    } catch (...) {  // rethrown in the test's own thread
      thrown = std::current_exception();
    }
  }).join();
  if (thrown != nullptr) {
    std::rethrow_exception(thrown);
  }
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += " " + name;
  }
  return text.empty() ? " nothing" : text;
}

}  // namespace

void put_work(const TestContext& context) {
  const State state = model_state(context.seed);
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks ranks(context, files, plan);
  {
    const OpenArchive archive = ranks.rank().begin(kUri, 1, state);
    for (const auto& [key, v] : state) {
      if (v.is_blob) {
        archive.put_blob(key, v.bytes);
        continue;
      }
      Value source = v;
      archive.put(key, source, {0, v.elements()});  // returns when the work is done
      std::fill(source.bytes.begin(), source.bytes.end(), '\x33');
    }
    archive.commit();
  }
  const std::string wrong = difference(ranks.load(kUri), state);
  require(wrong.empty(),
          "the sources were overwritten with 0x33 (51) after each put's work was done; "
          "saved was: " +
              wrong);
}

void put_any_thread(const TestContext& context) {
  const State state = model_state(context.seed);
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks ranks(context, files, plan);
  {
    const OpenArchive archive = ranks.rank().begin(kUri, 1, state);
    for (const auto& [key, v] : state) {
      in_other_thread([&, name = key, value = &v] {
        value->is_blob ? archive.put_blob(name, value->bytes)
                       : archive.put(name, *value, {0, value->elements()});
      });
    }
    archive.commit();
  }
  const OpenArchive archive = ranks.rank().open(kUri);
  in_other_thread([&] {
    const std::string wrong = difference(archive.read(), state);
    require(wrong.empty(), "put and read in other threads: " + wrong);
  });
}

void begin_unannounced(const TestContext& context) {
  const State state = model_state(context.seed);
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks(context, files, plan).save(kUri, 1, state, false);
  require_saved(context, files, kUri, state, "a save whose request lists no entries");
}

void close_uncommitted(const TestContext& context) {
  const State state = model_state(context.seed);
  for (const size_t puts : {size_t{0}, size_t{1}, state.size()}) {
    MemoryFiles files;
    files.make_directory(kFolder);
    IoPlan plan;
    Ranks ranks(context, files, plan);
    ranks.save(kOldUri, 1, state);
    const std::vector<std::string> before = files.tree();
    {
      const OpenArchive archive = ranks.rank().begin(kUri, 2, state);
      size_t done = 0;
      for (const auto& [key, v] : state) {
        if (done++ < puts) {
          v.is_blob ? archive.put_blob(key, v.bytes) : archive.put(key, v, {0, v.elements()});
        }
      }
    }
    require(files.tree() == before, "begin, " + std::to_string(puts) +
                                        " puts, close without commit: before there was" +
                                        joined(before) + ", now there is" + joined(files.tree()));
    expect_error({CIUIC_NOT_FOUND}, "open of a save that was closed without commit",
                 [&] { (void)ranks.rank().open(kUri); });
    ranks.finish();
    require_saved(context, files, kOldUri, state, "beside a save that was given up");
  }
}

void save_over(const TestContext& context) {
  const State before = model_state(context.seed);
  State after = model_state(context.seed + 10);
  after["value/new"] = random_tensor(kF32, {3}, context.seed);
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks ranks(context, files, plan);
  ranks.save(kUri, 1, before);
  const std::vector<std::string> tree = files.tree();
  {
    std::optional<OpenArchive> archive;
    try {
      archive.emplace(ranks.rank().begin(kUri, 2, after));
      archive->put("value/new", after["value/new"], {0, 3});
    } catch (const Error& e) {
      require(e.code() == CIUIC_EXISTS, std::string("a save over a checkpoint: ") + e.what());
    }
  }
  require(files.tree() == tree, "a save over a checkpoint, closed without commit, left" +
                                    joined(files.tree()) + ", expected" + joined(tree));
  require_saved(context, files, kUri, before, "after a save over it that was given up");
  const auto error = ranks.try_save(kUri, 2, after);
  if (error) {
    require(error->code() == CIUIC_EXISTS,
            std::string("a save over a checkpoint failed: ") + error->what());
    require_saved(context, files, kUri, before, "after a save over it that was refused");
    throw NotOffered("the plugin replaces no checkpoint; it refuses (EXISTS)");
  }
  require_saved(context, files, kUri, after, "after a save over a checkpoint");
  for (const std::string& path : files.tree(kFolder)) {
    require(path.compare(0, std::string(kUri).size(), kUri) == 0 &&
                path.compare(0, std::string(kUri).size() + 1, std::string(kUri) + ".") != 0,
            "after a save over a checkpoint " + path + " lies beside it");
  }
}

void save_again(const TestContext& context) {
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks ranks(context, files, plan);
  size_t first = 0;
  for (uint64_t step = 1; step <= 20; ++step) {
    const State state = model_state(context.seed + step);
    const std::string uri = std::string(kFolder) + "/step-" + std::to_string(step);
    ranks.save(uri, step, state);
    const size_t count = files.tree(kFolder).size();
    first = step == 1 ? count : first;
    require(count == first * step,
            "save " + std::to_string(step) + " of one instance: " + std::to_string(count) +
                " files and folders, expected " + std::to_string(first) + " a checkpoint");
    if (step % 5 == 0) {
      require_saved(context, files, uri, state, "save number " + std::to_string(step));
    }
  }
  ranks.finish();
}

}  // namespace ciuic::testing::checkpoint
