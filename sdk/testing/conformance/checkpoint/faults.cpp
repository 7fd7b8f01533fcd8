// SPDX-License-Identifier: MIT
#include "faults.hpp"

#include <algorithm>
#include <chrono>

namespace ciuic::testing::checkpoint {
namespace {

constexpr double kBudgetSeconds = 3;

std::vector<std::string> outside(const std::vector<std::string>& tree) {
  const std::string uri = kUri;
  std::vector<std::string> out;
  for (const std::string& path : tree) {
    if (path != uri && path.compare(0, uri.size() + 1, uri + "/") != 0) {
      out.push_back(path);
    }
  }
  return out;
}

std::string list_of(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) {
    text += " " + path;
  }
  return text;
}

const char* name_of(const Scenario& s) {
  if (s.cut) {
    return *s.cut == PowerCut::OnlySynced  ? "power cut (only what was synced is left)"
           : *s.cut == PowerCut::NamesOnly ? "power cut (names are left, unsynced data is not)"
                                           : "power cut (a random part is left)";
  }
  return s.fault == IoFault::Kill         ? "process killed"
         : s.fault == IoFault::ShortWrite ? "write cut in half"
         : s.code == CIUIC_EXHAUSTED      ? "no space"
                                          : "I/O error";
}

void run_scenarios(const TestContext& context, std::vector<Scenario> scenarios) {
  for (Scenario scenario : scenarios) {
    for (const bool is_over : {false, true}) {
      scenario.is_over = is_over;
      try {
        FaultySave(context, scenario).run_all();
      } catch (const NotOffered&) {
        if (!is_over) {
          throw;
        }  // a plugin that replaces nothing is done here
      }
    }
  }
}

}  // namespace

struct FaultySave::Run {
  MemoryFiles files;
  IoPlan plan;
  std::string what;
  std::optional<Error> error;
  Finding found;
};

FaultySave::FaultySave(const TestContext& context, Scenario scenario)
    : context_(context),
      scenario_(scenario),
      before_(model_state(context.seed)),
      after_(model_state(context.seed + 10)) {
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks ranks(context, files, plan, scenario.world);
  ranks.save(kOldUri, 1, before_);
  if (scenario.is_over) {
    ranks.save(kUri, 1, before_);
  }
  plan.clear_log();
  const auto error = ranks.try_save(kUri, 2, after_);
  if (error && (error->code() == CIUIC_EXISTS || error->code() == CIUIC_UNIMPLEMENTED)) {
    throw NotOffered(error->what());
  }
  require(!error, std::string("a save without faults failed: ") + (error ? error->what() : ""));
  calls_ = static_cast<int64_t>(plan.log().size());
  clean_ = files.tree();
}

std::string FaultySave::title(int64_t call, const IoPlan& plan) const {
  return std::string(name_of(scenario_)) + " at call " + std::to_string(call) + " (" +
         plan.where() + ")" + (scenario_.is_over ? ", save over a checkpoint" : "") +
         (scenario_.world > 1 ? ", " + std::to_string(scenario_.world) + " ranks" : "");
}

bool FaultySave::run(int64_t call, uint64_t seed) {
  Run run;
  run.files.make_directory(kFolder);
  {
    Ranks good(context_, run.files, run.plan, scenario_.world);
    good.save(kOldUri, 1, before_);
    if (scenario_.is_over) {
      good.save(kUri, 1, before_);
    }
  }
  const std::vector<std::string> at_first = run.files.tree();
  run.plan.fail_at(call, scenario_.fault, scenario_.code);
  {
    Ranks faulty(context_, run.files, run.plan, scenario_.world);
    run.error = faulty.try_save(kUri, 2, after_);
    run.what = title(call, run.plan);
    faulty.finish();
  }
  const bool has_struck = run.plan.has_struck();
  require(has_struck || !run.error,
          "a save without faults failed: " + std::string(run.error ? run.error->what() : ""));
  const bool may_leave = scenario_.fault == IoFault::Kill || run.plan.where().find("remove") == 0;
  if (run.error && !may_leave) {
    require(outside(run.files.tree()) == outside(at_first),
            run.what + ": the save reported a failure and left behind:" +
                list_of(outside(run.files.tree())) +
                "; before there was:" + list_of(outside(at_first)));
  }
  run.plan.fail_nothing();
  if (scenario_.cut) {
    run.files.power_cut(*scenario_.cut, seed + static_cast<uint64_t>(call));
  }
  check_old(run);
  check_new(run);
  check_next(run);
  return has_struck;
}

void FaultySave::check_old(Run& run) const {
  require_saved(context_, run.files, kOldUri, before_, run.what + ": the checkpoint before it");
}

void FaultySave::check_new(Run& run) const {
  try {
    run.found = look(context_, run.files, kUri);
  } catch (const CheckFailed& e) {
    throw CheckFailed(run.what + ": " + e.what());
  }
  const bool is_whole = run.found.kind == Finding::Kind::Whole;
  if (!run.error) {
    require(is_whole && run.found.state == after_,
            run.what + ": the save reported success, and the checkpoint is not there: " +
                (is_whole ? difference(run.found.state, after_) : run.found.text));
    return;
  }
  const bool is_old = scenario_.is_over && is_whole && run.found.state == before_;
  const bool is_absent = !scenario_.is_over && !is_whole;
  require(is_absent || is_old || (is_whole && run.found.state == after_),
          run.what + ": found neither the " + (scenario_.is_over ? "old" : "absence of a") +
              " checkpoint nor a whole new one: " +
              (is_whole ? difference(run.found.state, after_) : run.found.text));
}

void FaultySave::check_next(Run& run) const {
  IoPlan plan;
  Ranks ranks(context_, run.files, plan, scenario_.world);
  auto error = ranks.try_save(kUri, 2, after_);
  if (error && error->code() == CIUIC_EXISTS && run.found.kind == Finding::Kind::Whole) {
    return;  // it is whole, and the plugin replaces nothing
  }
  require(!error,
          run.what + ": the next save to the same uri failed: " + (error ? error->what() : ""));
  require_saved(context_, run.files, kUri, after_, run.what + ", then a good save");
  const std::vector<std::string> tree = run.files.tree();
  require(outside(tree) == outside(clean_), run.what + ", then a good save: found" +
                                                list_of(outside(tree)) + "; expected" +
                                                list_of(outside(clean_)));
  require(tree.size() <= clean_.size(),
          run.what + ", then a good save: the checkpoint has " + "stray files:" + list_of(tree));
}

void FaultySave::run_all() {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  int64_t stride = 1;
  // Works in threads may add or save a call: past the clean run's number to the end.
  for (int64_t call = 1; run(call, context_.seed); call += stride) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (seconds > kBudgetSeconds * context_.patience) {
      stride = std::max<int64_t>(calls_ / 20, 2);
    }
    require(call < 4 * calls_ + 100, "a save makes more and more calls after a fault");
  }
}

void faults_error(const TestContext& context) {
  run_scenarios(context, {{IoFault::Error, CIUIC_DATA_LOSS, {}, 1, false}});
}
void faults_no_space(const TestContext& context) {
  run_scenarios(context, {{IoFault::Error, CIUIC_EXHAUSTED, {}, 1, false}});
}
void faults_short_write(const TestContext& context) {
  run_scenarios(context, {{IoFault::ShortWrite, CIUIC_EXHAUSTED, {}, 1, false}});
}
void faults_kill(const TestContext& context) {
  run_scenarios(context, {{IoFault::Kill, CIUIC_DATA_LOSS, {}, 1, false}});
}
void faults_ranks(const TestContext& context) {
  run_scenarios(context, {{IoFault::Error, CIUIC_DATA_LOSS, {}, 2, false},
                          {IoFault::Kill, CIUIC_DATA_LOSS, {}, 2, false}});
}
void faults_power_cut(const TestContext& context) {
  run_scenarios(context, {{IoFault::Kill, CIUIC_DATA_LOSS, PowerCut::OnlySynced, 1, false},
                          {IoFault::Kill, CIUIC_DATA_LOSS, PowerCut::NamesOnly, 1, false},
                          {IoFault::Kill, CIUIC_DATA_LOSS, PowerCut::Random, 1, false}});
}

}  // namespace ciuic::testing::checkpoint
