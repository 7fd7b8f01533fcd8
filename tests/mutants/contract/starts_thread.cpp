// SPDX-License-Identifier: MIT
//
// A library that starts a thread when it is mapped, as a maths library with a pool does. The kit
// may not fork a process that has it mapped.
#include <chrono>
#include <thread>

#include "subject.hpp"

namespace {

__attribute__((constructor)) void start_pool() {
  std::thread([] {
    while (true) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }).detach();
}

class ThreadWhenLoaded final : public ciuic::mutants::Subject {
 public:
  static constexpr const char* name = "thread_when_loaded";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC | CIUIC_FLAG_NEVER_UNLOAD;
  using Subject::Subject;
};

}  // namespace

CIUIC_PLUGINS(ThreadWhenLoaded)
