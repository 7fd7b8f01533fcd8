// SPDX-License-Identifier: MIT
//
// What happens to the calls of "ciuic.io": all are written down, and one may go wrong. Shared by the
// ranks of a test, so that call k is the k-th of them all.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/error.hpp>

namespace ciuic::testing {

struct IoCall {
  std::string op;    // "create" "open" "read" "write" "size" "sync" "rename" "remove" ...
  std::string path;  // "from -> to" for a rename
};

enum class IoFault {
  None,
  Error,       // call k fails and does nothing
  ShortWrite,  // the k-th write does half of its work and fails
  Kill         // call k (half of it, if it is a write) and all after it never happen
};

/// Any thread.
class IoPlan {
 public:
  /// Counts from 1, from now on.
  void fail_at(int64_t call, IoFault fault, int32_t code) {
    const std::lock_guard<std::mutex> lock(mutex_);
    call_ = call;
    fault_ = fault;
    code_ = code;
    counted_ = 0;
    has_struck_ = false;
  }
  void fail_nothing() { fail_at(0, IoFault::None, 0); }
  /// Runs in the thread that makes a call, before it. For looking at the files at every instant.
  void before_each(std::function<void(const IoCall&)> look) { look_ = std::move(look); }

  [[nodiscard]] bool has_struck() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return has_struck_;
  }
  [[nodiscard]] std::vector<IoCall> log() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return log_;
  }
  void clear_log() {
    const std::lock_guard<std::mutex> lock(mutex_);
    log_.clear();
  }
  /// The call that the fault struck, for messages.
  [[nodiscard]] std::string where() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return struck_at_.op.empty() ? "no call" : struck_at_.op + " " + struck_at_.path;
  }

  /// For the io service: runs `whole`; or throws, after `half` where a write is cut short.
  void pass(const IoCall& call, const std::function<void()>& whole,
            const std::function<void()>& half = nullptr) {
    if (look_) {
      look_(call);
    }
    const Verdict verdict = judge(call);
    if (verdict == Verdict::Pass) {
      whole();
      return;
    }
    if (verdict == Verdict::Halve && half) {
      half();
    }
    throw Error(code_, call.op + " " + call.path + ": injected fault");
  }

 private:
  enum class Verdict { Pass, Halve, Fail };

  Verdict judge(const IoCall& call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    log_.push_back(call);
    if (fault_ == IoFault::None || (fault_ == IoFault::ShortWrite && call.op != "write")) {
      return Verdict::Pass;
    }
    ++counted_;
    if (counted_ == call_) {
      has_struck_ = true;
      struck_at_ = call;
      return fault_ == IoFault::Error ? Verdict::Fail : Verdict::Halve;
    }
    return fault_ == IoFault::Kill && counted_ > call_ ? Verdict::Fail : Verdict::Pass;
  }

  mutable std::mutex mutex_;
  std::function<void(const IoCall&)> look_;
  std::vector<IoCall> log_;
  IoCall struck_at_;
  IoFault fault_ = IoFault::None;
  int32_t code_ = 0;
  int64_t call_ = 0, counted_ = 0;
  bool has_struck_ = false;
};

}  // namespace ciuic::testing
