// SPDX-License-Identifier: MIT
#include "core/plugin/private_folder.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "core/config/joined.h"
#include "core/log/failure.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;

/// The variable, if it names an absolute folder: the XDG rule says to ignore others. Not of a
/// program that runs with more rights than its caller.
std::string absolute_folder(const char* variable) {
  const char* value = secure_getenv(variable);
  return value != nullptr && *value == '/' ? value : "";
}

std::string home_folder() {
  if (std::string home = absolute_folder("HOME"); !home.empty()) {
    return home;
  }
  std::vector<char> buffer(4096);
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr && found->pw_dir != nullptr ? found->pw_dir : "";
}

/// May libraries be mapped from there?
bool may_execute(const std::string& folder) {
  struct statvfs status {};
  return statvfs(folder.c_str(), &status) == 0 && (status.f_flag & ST_NOEXEC) == 0;
}

bool is_usable(const std::string& folder) {
  return make_private_folder(folder) && access(folder.c_str(), W_OK | X_OK) == 0 &&
         may_execute(folder);
}

std::string choose(const char* variable, const char* below_home) {
  std::vector<std::string> candidates;
  std::error_code ec;
  if (const std::string folder = absolute_folder(variable); !folder.empty()) {
    candidates.push_back(folder + "/ciuic");
  } else if (const std::string home = home_folder(); fs::is_directory(home, ec)) {
    candidates.push_back(home + below_home + "/ciuic");
  }
  const std::string own = "/ciuic-" + std::to_string(geteuid());
  if (const std::string folder = absolute_folder("TMPDIR"); !folder.empty()) {
    candidates.push_back(folder + own);
  }
  candidates.push_back("/tmp" + own);
  for (const std::string& candidate : candidates) {
    if (is_usable(candidate)) {
      return candidate;
    }
  }
  throw Failure(ExitCode::Environment, "there is no folder for private copies of plugins",
                "make one of these writable for you alone (mode 0700), on a file system without "
                "noexec: " +
                    joined(candidates, ", "));
}

}  // namespace

bool make_private_folder(const std::string& path) {
  std::error_code ec;
  if (!fs::exists(fs::symlink_status(path, ec))) {
    fs::create_directories(fs::path(path).parent_path(), ec);
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      return false;
    }
  }
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() &&
         ((status.st_mode & 0077) == 0 || chmod(path.c_str(), 0700) == 0);
}

std::string cache_folder() { return choose("XDG_CACHE_HOME", "/.cache"); }
std::string state_folder() { return choose("XDG_STATE_HOME", "/.local/state"); }

FolderLock::FolderLock(const std::string& path, double seconds)
    : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (fd_ >= 0 && flock(fd_, LOCK_EX | LOCK_NB) != 0 && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

}  // namespace ciuic::core
