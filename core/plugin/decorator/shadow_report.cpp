// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/shadow_report.h"

#include "core/plugin/kind.h"

namespace ciuic::core {
namespace {

/// Differences that are written out; the others are only counted.
constexpr uint64_t kMostWritten = 10;

}  // namespace

ShadowReport::ShadowReport(const DecoratorContext& context, std::string candidate)
    : trusted_(std::string(kind_name(context.kind)) + " " + context.plugin),
      candidate_(std::move(candidate)),
      metric_name_("shadow_" + std::string(kind_name(context.kind)) + "_differences"),
      log_(*context.log),
      metric_(context.metric) {}

void ShadowReport::compared(const char* function, const std::string& difference) {
  const std::lock_guard lock(mutex_);
  ++compared_;
  if (!difference.empty() && ++differences_ <= kMostWritten) {
    log_.warn("shadow: candidate " + candidate_ + " differs from " + trusted_ + " in " + function +
              ", comparison " + std::to_string(compared_) + ": " + difference +
              (differences_ == kMostWritten ? "; further differences are only counted" : ""));
  }
  if (metric_) {
    metric_(metric_name_, static_cast<double>(differences_));
  }
}

void ShadowReport::not_compared(const char* function, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (++not_compared_ == 1) {
    log_.warn("shadow: a call of " + std::string(function) +
              " is not compared, nor are others like it: " + why);
  }
}

}  // namespace ciuic::core
