// SPDX-License-Identifier: MIT
//
// The real thing: a child saves to a real disk and is killed in the middle. (No power is cut: what
// the child wrote, the kernel has.)
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <ciuic/testing/disk_files.hpp>

#include "checkpoint_tests.hpp"
#include "ranks.hpp"

namespace ciuic::testing::checkpoint {
namespace {

/// Saves and dies before call `call`; 0 when the save came to its end.
[[noreturn]] void save_and_die(const TestContext& context, const std::string& uri,
                               const State& state, int64_t call) {
  int64_t calls = 0;
  IoPlan plan;
  plan.before_each([&](const IoCall&) {
    if (++calls == call) {
      (void)::raise(SIGKILL);
    }
  });
  DiskFiles files;
  int result = 1;
  try {
    Ranks ranks(context, files, plan);
    result = ranks.try_save(uri, 2, state) ? 1 : 0;
  } catch (const std::exception&) {
    result = 2;
  }
  ::_exit(result);
}

/// How the child ended: killed, or with a result.
bool was_killed(pid_t child) {
  int status = 0;
  require(::waitpid(child, &status, 0) == child, "cannot wait for the child that saves");
  require(WIFSIGNALED(status) || WEXITSTATUS(status) == 0,
          "a save in a child process failed with exit status " + std::to_string(status));
  return WIFSIGNALED(status);
}

}  // namespace

void faults_process(const TestContext& context) {
  const State before = model_state(context.seed);
  const State after = model_state(context.seed + 10);
  DiskFiles files;
  const auto read = [&](const std::string& uri) {
    IoPlan plan;
    Ranks reader(context, files, plan);
    return reader.rank().open(uri).read();
  };
  bool is_over = false;
  for (int64_t call = 1; !is_over; call += 3) {
    const std::string folder = context.scratch + "/killed-" + std::to_string(call);
    const std::string what = "SIGKILL before call " + std::to_string(call);
    files.make_directory(folder);
    IoPlan plan;
    Ranks(context, files, plan).save(folder + "/old", 1, before);
    const pid_t child = ::fork();
    if (child == 0) {
      save_and_die(context, folder + "/new", after, call);
    }
    is_over = !was_killed(child);
    require(difference(read(folder + "/old"), before).empty(), what + ": the old checkpoint");
    try {
      require(difference(read(folder + "/new"), after).empty(), what + ": the new checkpoint");
    } catch (const Error& e) {
      require(!is_over && (e.code() == CIUIC_NOT_FOUND || e.code() == CIUIC_DATA_LOSS),
              what + ": open of the new checkpoint: " + e.what());
    }
    Ranks again(context, files, plan);
    const auto error = again.try_save(folder + "/new", 2, after);
    require(!error || error->code() == CIUIC_EXISTS,
            what + ", then a good save: " + (error ? error->what() : ""));
    size_t names = 0;
    files.list(folder, [&](const std::string&, uint64_t) { ++names; });
    require(names == 2, what + ", then a good save: " + std::to_string(names) +
                            " names in the folder, expected old and new");
  }
}

}  // namespace ciuic::testing::checkpoint
