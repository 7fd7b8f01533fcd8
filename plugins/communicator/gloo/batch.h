// SPDX-License-Identifier: MIT
//
// The operations of one submit; they complete together.
#pragma once

#include <mutex>
#include <optional>

#include <ciuic/work.hpp>

namespace ciuic::plugins::gloo {

/// Any thread.
class Batch {
 public:
  Batch(const Host& host, size_t size) : done_(host), remaining_(size) {}

  [[nodiscard]] Work work() const { return done_.work(); }

  /// The first error is the work's.
  void one_ended(const std::optional<Error>& error) {
    {
      const std::lock_guard lock(mutex_);
      if (error && !error_) {
        error_ = error;
      }
      if (--remaining_ > 0) {
        return;
      }
    }
    if (error_) {
      done_.fail(*error_);
    } else {
      done_.finish();
    }
  }

 private:
  const Completion done_;
  std::mutex mutex_;
  size_t remaining_;
  std::optional<Error> error_;
};

}  // namespace ciuic::plugins::gloo
