// SPDX-License-Identifier: MIT
//
// A save seen from outside, at every instant between two calls of "ciuic.io": when does the new
// checkpoint become visible, and what is durable then? How a plugin gets there is its own affair.
#include "checkpoint_tests.hpp"
#include "ranks.hpp"

namespace ciuic::testing::checkpoint {
namespace {

std::string first_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size() && i < 4; ++i) {
    text += (i == 0 ? "" : "; ") + lines[i];
  }
  return text + (lines.size() > 4 ? "; ..." : "");
}

/// Saves `before` to kUri (where it is given), then `after`, and calls `look` before each call and
/// after the last. A plugin that refuses to save over skips that.
void watch(const TestContext& context, const State* before, const State& after,
           const std::function<void(MemoryFiles&, const std::string& next)>& look_at) {
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan quiet;
  if (before != nullptr) {
    Ranks(context, files, quiet).save(kUri, 1, *before);
  }
  IoPlan plan;
  plan.before_each([&](const IoCall& call) { look_at(files, call.op + " " + call.path); });
  Ranks ranks(context, files, plan);
  const auto error = ranks.try_save(kUri, 2, after);
  if (error && (error->code() == CIUIC_EXISTS || error->code() == CIUIC_UNIMPLEMENTED)) {
    throw NotOffered(error->what());
  }
  require(!error, std::string("the save failed: ") + (error ? error->what() : ""));
  look_at(files, "the end");
}

/// The test's own failure is kept over the C calls in between and thrown at the end.
class FirstFailure {
 public:
  template <typename Body>
  void run(Body&& body) {
    if (text_.empty()) {
      try {
        body();
      } catch (const CheckFailed& e) {
        text_ = e.what();
      }
    }
  }
  void report() const { require(text_.empty(), text_); }

 private:
  std::string text_;
};

}  // namespace

void commit_durable(const TestContext& context) {
  const State state = model_state(context.seed);
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  {
    Ranks ranks(context, files, plan);
    ranks.save(kUri, 1, state);
  }
  const std::vector<std::string> loose = files.not_durable(kUri);
  files.power_cut(PowerCut::OnlySynced);
  const Finding found = look(context, files, kUri);
  const std::string wrong =
      found.kind == Finding::Kind::Whole ? difference(found.state, state) : found.text;
  require(wrong.empty(),
          "commit's work was done, then the power was cut: " + wrong +
              " (not synced was: " + first_lines(loose) +
              "). Sync every file, then the folder that holds a new or renamed name.");
}

void commit_order(const TestContext& context) {
  const State after = model_state(context.seed);
  FirstFailure failure;
  watch(context, nullptr, after, [&](MemoryFiles& files, const std::string& next) {
    failure.run([&] {
      if (!files.exists(kUri) || look(context, files, kUri).kind != Finding::Kind::Whole) {
        return;
      }
      for (const std::string& path : files.not_durable(kUri)) {
        require(path.find(": its data") == std::string::npos,
                "before \"" + next +
                    "\" the new checkpoint can be opened, and this was not "
                    "synced: " +
                    path + ". Sync the data before the rename that makes it visible.");
      }
    });
  });
  failure.report();
}

void commit_reader(const TestContext& context) {
  const State before = model_state(context.seed);
  const State after = model_state(context.seed + 10);
  FirstFailure failure;
  const auto watch_for = [&](const State* old) {
    watch(context, old, after, [&](MemoryFiles& files, const std::string& next) {
      failure.run([&] {
        const Finding found = look(context, files, kUri);
        const bool is_new = found.kind == Finding::Kind::Whole && found.state == after;
        const bool is_old = old == nullptr
                                ? found.kind != Finding::Kind::Whole
                                : found.kind == Finding::Kind::Whole && found.state == *old;
        require(is_new || is_old, "a reader before \"" + next + "\" sees neither the " +
                                      (old == nullptr ? "absence" : "old checkpoint") +
                                      " nor the new checkpoint: " + found.text);
        require(next != "the end" || is_new,
                "after commit a reader does not see the new checkpoint");
      });
    });
    failure.report();
  };
  watch_for(nullptr);
  try {
    watch_for(&before);
  } catch (const NotOffered&) {  // a plugin that replaces nothing: the new one was watched
  }
}

}  // namespace ciuic::testing::checkpoint
