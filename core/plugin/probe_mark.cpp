// SPDX-License-Identifier: MIT
#include "core/plugin/probe_mark.h"

#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

#include "core/log/failure.h"
#include "core/plugin/private_folder.h"
#include "core/plugin/sha256.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = 8192;
/// As for a hang: who killed ciuic may also have been a person, or the kernel for lack of memory.
constexpr std::chrono::hours kTime{1};

std::string folder_of(const std::string& state_folder) { return state_folder + "/probing"; }

bool is_held_back(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN;
}

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (is_held_back(signal)) {
      sigaddset(&set, signal);
    }
  }
  return set;
}

}  // namespace

ProbeMark::ProbeMark(const std::string& state_folder) {
  if (!make_private_folder(folder_of(state_folder))) {
    return;
  }
  std::string path = folder_of(state_folder) + "/XXXXXX";
  OpenFile file(mkostemp(path.data(), O_CLOEXEC));
  if (file && flock(file.fd(), LOCK_EX | LOCK_NB) == 0) {
    file_ = std::move(file);
    path_ = std::move(path);
  } else if (file) {
    unlink(path.c_str());
  }
}

ProbeMark::~ProbeMark() {
  if (!path_.empty()) {
    unlink(path_.c_str());
  }
}

void ProbeMark::settle_stale(const std::string& state_folder, const Quarantine& quarantine) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder_of(state_folder), ec)) {
    const std::string path = entry.path().string();
    const OpenFile file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!file || flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
      continue;  // its process lives
    }
    const std::string text = read_text(path, kMaxBytes).value_or("");
    const std::string hash = text.substr(0, text.find(' '));
    if (is_sha256(hash)) {
      try {
        quarantine.add(hash, text.size() > hash.size() ? text.substr(hash.size() + 1) : "",
                       "probe: ciuic itself was killed while it was looked at", kTime);
      } catch (const Failure&) {
        continue;  // the mark stays, for a start that can write
      }
    }
    unlink(path.c_str());
  }
}

InterruptsHeldBack::InterruptsHeldBack() {
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

InterruptsHeldBack::~InterruptsHeldBack() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool InterruptsHeldBack::is_one_pending() {
  sigset_t pending;
  sigset_t set = interrupts();
  sigset_t blocked;
  sigpending(&pending);
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (sigismember(&set, signal) == 1 && sigismember(&blocked, signal) == 1 &&
        sigismember(&pending, signal) == 1) {
      return true;
    }
  }
  return false;
}

}  // namespace ciuic::core
