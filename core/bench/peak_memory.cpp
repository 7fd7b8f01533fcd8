// SPDX-License-Identifier: MIT
#include "core/bench/peak_memory.h"

#include <fstream>
#include <string>

namespace ciuic::core {

int64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    if (key == "VmHWM:") {
      int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes * 1024;
    }
  }
  return 0;
}

bool reset_peak_rss() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

}  // namespace ciuic::core
