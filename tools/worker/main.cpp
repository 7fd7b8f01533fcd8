// SPDX-License-Identifier: MIT
//
// ciuic-worker: the part of ciuic that links LibTorch. `ciuic` starts it; it is no command of its
// own.
#include <cstdlib>
#include <malloc.h>
#include <unistd.h>

#include <c10/util/Logging.h>

#include "core/memory/tensor_arena.h"
#include "core/plugin/trampoline/crash_handler.h"
#include "core/plugin/trampoline/last_words.h"
#include "tools/worker/commands.h"

namespace ciuic::tools {
namespace {

int dispatch(const Arguments& all) {
  if (!all.empty()) {
    const Arguments rest(all.begin() + 1, all.end());
    if (all[0] == "train") {
      return train_rank(rest);
    }
    if (all[0] == "evaluate") {
      return evaluate(rest);
    }
    if (all[0] == "estimate") {
      return estimate(rest);
    }
    if (all[0] == "generate") {
      return generate(rest);
    }
    if (all[0] == "replay-product") {
      return replay_product(rest);
    }
    if (all[0] == "replay") {
      return replay(rest);
    }
  }
  throw core::Failure(core::ExitCode::Usage, "ciuic-worker is started by ciuic",
                      "see ciuic --help");
}

}  // namespace
}  // namespace ciuic::tools

namespace {

/// A step allocates and frees the same large blocks again and again, in libraries too. Kept in the
/// heap they cost nothing; mapped anew they cost a page fault for every 4 KiB.
void keep_large_blocks() {
  constexpr int kLargest = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_TRIM_THRESHOLD, kLargest);
}

}  // namespace

int main(int argc, char** argv) {
  keep_large_blocks();
  ciuic::core::TensorArena::install();
  c10::initLogging();  // TORCH_CPP_LOG_LEVEL counts from here on
  ciuic::core::install_crash_handler();
  const ciuic::tools::Arguments arguments(argv + 1, argv + argc);
  const int code = ciuic::tools::run_command([&] { return ciuic::tools::dispatch(arguments); },
                                             &ciuic::tools::show_failure);
  ciuic::core::say_done(code);
  // Everything of ours is destroyed by now. What is left are other libraries' exit handlers and
  // threads, which are not worth waiting for.
  _exit(code);
}
