// SPDX-License-Identifier: MIT
#include "core/train/process_memory.h"

#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace ciuic::core {

int64_t resident_bytes() {
  int64_t total = 0;
  int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace ciuic::core
