// SPDX-License-Identifier: MIT
#include "tools/worker/progress_line.h"

#include <cstdio>
#include <unistd.h>

#include "core/train/progress.h"

namespace ciuic::tools {

using Clock = std::chrono::steady_clock;

ProgressLine::ProgressLine(int64_t total_tokens, bool is_quiet)
    : total_tokens_(total_tokens),
      is_quiet_(is_quiet),
      is_terminal_(isatty(STDERR_FILENO) != 0),
      begin_(Clock::now()),
      last_(begin_) {}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void ProgressLine::update(int64_t tokens, double loss) {
  const auto apart = is_terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10);
  if (is_quiet_ || tokens == 0 || Clock::now() - last_ < apart) {
    return;
  }
  last_ = Clock::now();
  const double rate = static_cast<double>(tokens) / seconds();
  std::fprintf(stderr, "%s%lld of %lld tokens (%.0f%%)  loss %.4f  %.0f tokens/s  %s left%s",
               is_terminal_ ? "\r\033[K" : "", static_cast<long long>(tokens),
               static_cast<long long>(total_tokens_),
               100.0 * static_cast<double>(tokens) / static_cast<double>(total_tokens_), loss, rate,
               core::short_duration(static_cast<double>(total_tokens_ - tokens) / rate).c_str(),
               is_terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void ProgressLine::finish(int64_t tokens, double loss) {
  if (!is_quiet_) {
    std::fprintf(stderr, "%s%lld tokens  loss %.4f  %.0f tokens/s  %s\n",
                 is_terminal_ ? "\r\033[K" : "", static_cast<long long>(tokens), loss,
                 static_cast<double>(tokens) / seconds(), core::short_duration(seconds()).c_str());
  }
}

}  // namespace ciuic::tools
