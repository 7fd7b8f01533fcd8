// SPDX-License-Identifier: MIT
#include "core/train/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;

constexpr char kStepPrefix[] = "step-";
constexpr char kTokens[] = "tokens";  // made from the data alone: any run may use them

[[noreturn]] void storage_failure(const std::string& what, const std::string& file, int error) {
  throw Failure(ExitCode::Storage, what + ": " + std::strerror(error), "",
                {{"file", file}, {"errno", std::to_string(error)}});
}

void make_directories(const std::string& path) {
  std::error_code ec;
  fs::create_directories(path, ec);
  if (ec) {
    storage_failure("cannot create the run's folder", path, ec.value());
  }
}

std::string owner_of(int fd) {
  char text[32] = {};
  const ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
  std::string pid(text, n > 0 ? static_cast<size_t>(n) : 0);
  pid.erase(std::find(pid.begin(), pid.end(), '\n'), pid.end());
  return pid.empty() ? "unknown" : pid;
}

constexpr auto kLastBreath = std::chrono::seconds(5);  // of the ranks of a launcher that was killed

/// The process that the lock names is gone: what still holds it is ending too.
bool owner_is_gone(int fd) {
  const std::string pid = owner_of(fd);
  int number = 0;
  const auto read = std::from_chars(pid.data(), pid.data() + pid.size(), number);
  return read.ec == std::errc() && number > 0 && kill(number, 0) != 0 && errno == ESRCH;
}

bool take_lock(int fd) {
  const auto deadline = std::chrono::steady_clock::now() + kLastBreath;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (!owner_is_gone(fd) || std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

/// The lock is an flock on <folder>/lock: it goes with the last process that holds the descriptor,
/// so a killed run leaves none.
int lock(const std::string& folder) {
  const std::string file = folder + "/lock";
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    storage_failure("cannot write the run's folder", file, errno);
  }
  if (!take_lock(fd)) {
    const std::string pid = owner_of(fd);
    close(fd);
    throw Failure(ExitCode::Usage, "the run's folder is in use by process " + pid,
                  "stop that run, or give this one another run.output", {{"file", folder}});
  }
  // Between open and flock a run that starts afresh may have moved the file away: then this is no lock of `folder`.
  struct stat held {};
  struct stat there {};
  if (fstat(fd, &held) != 0 || stat(file.c_str(), &there) != 0 || held.st_ino != there.st_ino) {
    close(fd);
    return lock(folder);
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    const int error = errno;
    close(fd);
    storage_failure("cannot write the run's lock", file, error);
  }
  return fd;
}

bool holds_a_run(const std::string& path) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(path, ec)) {
    const std::string name = entry.path().filename();
    if (name != "lock" && name != kTokens) {
      return true;
    }
  }
  return false;
}

std::string move_aside(const std::string& path) {
  for (int i = 1;; ++i) {
    const std::string target = path + "." + std::to_string(i);
    std::error_code ec;
    if (fs::exists(target, ec)) {
      continue;
    }
    fs::rename(path, target, ec);
    if (ec) {
      storage_failure("cannot move the old run aside to " + target, path, ec.value());
    }
    return target;
  }
}

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  return path;
}

/// The run's folder of ".../checkpoints/latest", the file that names the newest one.
std::optional<std::string> run_that_holds_latest(const fs::path& path) {
  const fs::path checkpoints = path.parent_path();
  std::error_code ec;
  if (path.filename() != "latest" || checkpoints.filename() != "checkpoints" ||
      fs::is_directory(path, ec)) {
    return std::nullopt;
  }
  const fs::path run = checkpoints.parent_path();
  return run.empty() ? "." : run.string();
}

}  // namespace

RunFolder RunFolder::claim(const std::string& given, bool afresh) {
  std::error_code ec;
  // A link stands for its target: what is moved aside is the folder and not the link to it.
  const std::string path = fs::is_symlink(without_trailing_slash(given), ec)
                               ? fs::weakly_canonical(given, ec).string()
                               : without_trailing_slash(given);
  make_directories(path);
  RunFolder folder(path, lock(path));
  if (afresh && holds_a_run(path)) {
    folder.moved_to_ = move_aside(path);  // the lock moves along and is given up for a new one
    close(folder.lock_fd_);
    folder.lock_fd_ = -1;
    make_directories(path);
    folder.lock_fd_ = lock(path);
    fs::rename(folder.moved_to_ + "/" + kTokens, path + "/" + kTokens, ec);
  }
  make_directories(path + "/log");
  make_directories(path + "/checkpoints");
  return folder;
}

RunFolder::RunFolder(RunFolder&& o) noexcept
    : path_(std::move(o.path_)),
      moved_to_(std::move(o.moved_to_)),
      lock_fd_(std::exchange(o.lock_fd_, -1)) {}

RunFolder::~RunFolder() {
  if (lock_fd_ >= 0) {
    close(lock_fd_);
  }
}

std::string RunFolder::checkpoint_of_step(uint64_t step) const {
  std::string digits = std::to_string(step);
  digits.insert(0, digits.size() < 8 ? 8 - digits.size() : 0, '0');
  return checkpoints() + "/" + kStepPrefix + digits;
}

std::vector<std::pair<uint64_t, std::string>> checkpoints_in(const std::string& run_folder) {
  std::vector<std::pair<uint64_t, std::string>> found;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(run_folder + "/checkpoints", ec)) {
    const std::string name = entry.path().filename();
    uint64_t step = 0;
    if (name.rfind(kStepPrefix, 0) != 0) {
      continue;
    }
    const char* digits = name.data() + std::strlen(kStepPrefix);
    const auto [end, error] = std::from_chars(digits, name.data() + name.size(), step);
    if (error == std::errc() && end == name.data() + name.size()) {
      found.emplace_back(step, entry.path().string());
    }
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::vector<std::string> set_aside_above(const RunFolder& folder, uint64_t step) {
  std::vector<std::string> moved;
  for (const auto& [other, path] : checkpoints_in(folder.path())) {
    if (other <= step) {
      continue;
    }
    const std::string name =
        folder.checkpoints() + "/abandoned-" + fs::path(path).filename().string();
    std::string target = name;
    std::error_code ec;
    for (int i = 1; fs::exists(target, ec); ++i) {
      target = name + "." + std::to_string(i);
    }
    fs::rename(path, target, ec);
    if (ec) {
      storage_failure("cannot set an abandoned checkpoint aside", path, ec.value());
    }
    moved.push_back(target);
  }
  return moved;
}

std::vector<std::string> sweep_unfinished(const RunFolder& folder) {
  std::vector<std::string> swept;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder.checkpoints(), ec)) {
    const std::string name = entry.path().filename();
    const bool is_unfinished = name.ends_with(".partial") || name.ends_with(".removed");
    if (name.rfind(kStepPrefix, 0) == 0 && is_unfinished) {
      swept.push_back(entry.path().string());
    }
  }
  for (const std::string& path : swept) {
    fs::remove_all(path, ec);
  }
  return swept;
}

std::string resolve_model_path(const std::string& given) {
  const std::string whole = without_trailing_slash(given);
  const std::string path = run_that_holds_latest(whole).value_or(whole);
  std::error_code ec;
  if (!fs::is_directory(path + "/checkpoints", ec)) {
    return whole;
  }
  std::ifstream latest(path + "/checkpoints/latest");
  std::string name;
  if (std::getline(latest, name) && !name.empty() && name.find('/') == std::string::npos &&
      fs::is_directory(path + "/checkpoints/" + name, ec)) {
    return path + "/checkpoints/" + name;
  }
  const auto all = checkpoints_in(path);
  if (all.empty()) {
    throw Failure(ExitCode::Storage, "this run's folder has no checkpoint yet", "",
                  {{"file", path}});
  }
  return all.front().second;
}

void replace_file(const std::string& path, const std::string& text) {
  const std::string aside = path + ".partial";
  const int fd = open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    storage_failure("cannot write", aside, errno);
  }
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(fd, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      const int error = errno;
      close(fd);
      unlink(aside.c_str());
      storage_failure("cannot write", aside, error);
    }
    written += static_cast<size_t>(n);
  }
  const bool ok = fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (!ok || rename(aside.c_str(), path.c_str()) != 0) {
    const int shown = ok ? errno : error;
    unlink(aside.c_str());
    storage_failure("cannot write", path, shown);
  }
  const int directory =
      open(fs::path(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory);
    close(directory);
  }
}

}  // namespace ciuic::core
