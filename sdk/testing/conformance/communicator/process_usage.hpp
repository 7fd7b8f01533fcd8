// SPDX-License-Identifier: MIT
//
// What this process holds of the system: threads, open files, memory.
#pragma once

#include <cstdint>
#include <dirent.h>
#include <fstream>
#include <string>

namespace ciuic::testing::communicator {

inline int64_t count_entries(const char* folder) {
  int64_t count = 0;
  if (DIR* directory = opendir(folder)) {
    while (readdir(directory) != nullptr) {
      ++count;
    }
    closedir(directory);
  }
  return count;
}
inline int64_t num_threads() { return count_entries("/proc/self/task"); }
inline int64_t num_open_files() { return count_entries("/proc/self/fd"); }

/// A value of a file of "Key: number kB" lines, in bytes; 0 when it is not there.
inline int64_t kilobytes_line(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key + ":", 0) == 0) {
      return std::stoll(line.substr(key.size() + 1)) * 1024;
    }
  }
  return 0;
}
inline int64_t resident_bytes() { return kilobytes_line("/proc/self/status", "VmRSS"); }
inline int64_t available_bytes() { return kilobytes_line("/proc/meminfo", "MemAvailable"); }

}  // namespace ciuic::testing::communicator
