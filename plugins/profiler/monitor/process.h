// SPDX-License-Identifier: MIT
//
// What the kernel says about this process.
#pragma once

#include <cstdint>

namespace ciuic::plugins::monitor {

struct ProcessUse {
  int64_t rss_bytes = 0;
  double cpu_seconds = 0;         // user and system, all threads
  int64_t major_page_faults = 0;  // pages that had to come from disk: the sign of swapping
};

/// Keeps /proc/self/statm open, so that a sample is two system calls.
class ProcessSampler {
 public:
  ProcessSampler();
  ~ProcessSampler();
  ProcessSampler(const ProcessSampler&) = delete;
  ProcessSampler& operator=(const ProcessSampler&) = delete;

  [[nodiscard]] ProcessUse sample() const noexcept;

 private:
  int statm_;
};

}  // namespace ciuic::plugins::monitor
