// SPDX-License-Identifier: MIT
#include "process.h"

#include <cstdlib>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace ciuic::plugins::monitor {

ProcessSampler::ProcessSampler() : statm_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

ProcessSampler::~ProcessSampler() {
  if (statm_ >= 0) {
    close(statm_);
  }
}

ProcessUse ProcessSampler::sample() const noexcept {
  ProcessUse use;
  char text[128] = {};
  if (statm_ >= 0 && pread(statm_, text, sizeof(text) - 1, 0) > 0) {
    char* resident = nullptr;  // the second number, in pages
    (void)std::strtoll(text, &resident, 10);
    use.rss_bytes = std::strtoll(resident, nullptr, 10) * sysconf(_SC_PAGESIZE);
  }
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    use.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    use.major_page_faults = usage.ru_majflt;
  }
  return use;
}

}  // namespace ciuic::plugins::monitor
