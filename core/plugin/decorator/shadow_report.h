// SPDX-License-Identifier: MIT
//
// What a shadow found: the first differences in the log, and the count in the metrics.
#pragma once

#include <mutex>
#include <string>

#include "core/plugin/decorator/decorate.h"

namespace ciuic::core {

/// Thread rule: any thread.
class ShadowReport {
 public:
  ShadowReport(const DecoratorContext& context, std::string candidate);

  /// One comparison; `difference` is empty where there is none.
  void compared(const char* function, const std::string& difference);
  /// A call that could not be given to the candidate.
  void not_compared(const char* function, const std::string& why);

 private:
  const std::string trusted_;
  const std::string candidate_;
  const std::string metric_name_;
  Log& log_;
  const std::function<void(const std::string&, double)> metric_;
  std::mutex mutex_;
  uint64_t compared_ = 0;
  uint64_t differences_ = 0;
  uint64_t not_compared_ = 0;
};

}  // namespace ciuic::core
