// SPDX-License-Identifier: MIT
#include "tools/probe/open_descriptors.h"

#include <cstdlib>
#include <dirent.h>
#include <memory>
#include <sys/stat.h>

namespace ciuic::tools {

OpenDescriptors open_descriptors() {
  OpenDescriptors all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), &closedir);
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const int fd = std::atoi(entry->d_name);
    struct stat status {};
    if (entry->d_name[0] != '.' && fd != dirfd(folder.get()) && fstat(fd, &status) == 0) {
      all.emplace(fd, std::pair(status.st_dev, status.st_ino));
    }
  }
  return all;
}

std::string replaced(const OpenDescriptors& before, const OpenDescriptors& after) {
  for (const auto& [fd, target] : before) {
    const auto at = after.find(fd);
    if (at == after.end() || at->second != target) {
      return "descriptor " + std::to_string(fd) +
             (at == after.end() ? " is closed" : " points elsewhere");
    }
  }
  return "";
}

std::string opened(const OpenDescriptors& before, const OpenDescriptors& after) {
  std::string list;
  for (const auto& [fd, target] : after) {
    if (before.count(fd) == 0) {
      list += (list.empty() ? "descriptors " : ", ") + std::to_string(fd);
    }
  }
  return list;
}

}  // namespace ciuic::tools
