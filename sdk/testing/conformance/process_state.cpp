// SPDX-License-Identifier: MIT
#include "process_state.hpp"

#include <algorithm>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

extern char** environ;

namespace ciuic::testing {
namespace {

std::string hex(const void* data, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < size; ++i) {
    const auto byte = static_cast<const unsigned char*>(data)[i];
    out += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

/// A line for each signal that is not left to its default.
std::string signal_handlers() {
  std::string out;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0 ||
        (action.sa_handler == SIG_DFL && action.sa_flags == 0)) {
      continue;
    }
    const char* name = sigabbrev_np(signal);
    out += (name == nullptr ? std::to_string(signal) : "SIG" + std::string(name)) +
           (action.sa_handler == SIG_DFL ? " default"
            : action.sa_handler == SIG_IGN
                ? " ignored"
                : " handled by " + hex(&action.sa_handler, sizeof(action.sa_handler))) +
           ", flags " + std::to_string(action.sa_flags) + "\n";
  }
  return out;
}

std::string signal_mask() {
  sigset_t set;
  std::string out;
  pthread_sigmask(SIG_SETMASK, nullptr, &set);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&set, signal) == 1) {
      out += std::to_string(signal) + " ";
    }
  }
  return out;
}

std::string floating_point() {
  std::string out = "rounding " + std::to_string(std::fegetround());
#if defined(__x86_64__)
  constexpr unsigned kExceptionFlags = 0x3f;  // sticky results, which every computation may set
  out += ", mxcsr " + std::to_string(_mm_getcsr() & ~kExceptionFlags);
#endif
  return out;
}

std::string working_directory() {
  char path[4096];
  return getcwd(path, sizeof(path)) == nullptr ? "" : path;
}

std::string file_mask() {
  const mode_t mask = umask(0);
  umask(mask);
  return std::to_string(mask);
}

std::string environment() {
  std::vector<std::string> all;
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    all.emplace_back(*e);
  }
  std::sort(all.begin(), all.end());
  std::string out;
  for (const std::string& e : all) {
    out += e + "\n";
  }
  return out;
}

/// Of whichever OpenMP runtime has been mapped, by the plugin or by what it links.
std::string open_mp_threads() {
  for (const char* name : {"libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"}) {
    if (void* runtime = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {
      const auto count = reinterpret_cast<int (*)()>(dlsym(runtime, "omp_get_max_threads"));
      const std::string out = count == nullptr ? "" : std::to_string(count());
      dlclose(runtime);
      return out;
    }
  }
  return "";
}

/// rand() and random() share a state, in memory of the caller's choice: ours, so it can be seen.
class RandomState {
 public:
  RandomState() { initstate(20260101, bytes_.data(), bytes_.size()); }
  [[nodiscard]] std::string text() const { return hex(bytes_.data(), bytes_.size()); }

 private:
  std::array<char, 128> bytes_{};
};

std::string random_numbers() {
  static const RandomState state;
  return state.text();
}

/// Device and inode: the name alone does not tell one pipe or file from another put in its place.
std::string identity_of(int fd) {
  struct stat s {};
  return fstat(fd, &s) != 0 ? "closed" : std::to_string(s.st_dev) + ":" + std::to_string(s.st_ino);
}

std::string standard_files() {
  std::string out;
  for (const int fd : {0, 1, 2}) {
    out += std::to_string(fd) + " is " + identity_of(fd) + "\n";
  }
  return out;
}

std::vector<std::string> open_files() {
  std::vector<std::string> out;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) {
    return out;
  }
  const int own = dirfd(folder);
  while (const dirent* entry = readdir(folder)) {
    char target[4096];
    const std::string link = std::string("/proc/self/fd/") + entry->d_name;
    const ssize_t size = readlink(link.c_str(), target, sizeof(target));
    if (size > 0 && std::strtol(entry->d_name, nullptr, 10) != own) {
      out.push_back(std::string(entry->d_name) + " -> " +
                    std::string(target, static_cast<size_t>(size)) + " (" +
                    identity_of(std::atoi(entry->d_name)) + ")");
    }
  }
  closedir(folder);
  std::sort(out.begin(), out.end());
  return out;
}

size_t count_threads() {
  size_t count = 0;
  if (DIR* folder = opendir("/proc/self/task")) {
    while (const dirent* entry = readdir(folder)) {
      count += entry->d_name[0] == '.' ? 0 : 1;
    }
    closedir(folder);
  }
  return count;
}

void compare(std::string& out, const char* what, const std::string& before,
             const std::string& after) {
  constexpr size_t kShown = 200;
  if (before != after) {
    out += (out.empty() ? "" : "; ") + std::string(what) + " (before: \"" +
           before.substr(0, kShown) + "\", after: \"" + after.substr(0, kShown) + "\")";
  }
}

/// Shows the first line in which two texts differ.
void compare_lines(std::string& out, const char* what, const std::string& before,
                   const std::string& after) {
  if (before != after) {
    const auto differs = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
    const auto line = [](const std::string& text, size_t at) {
      const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
      return text.substr(begin, text.find('\n', at) - begin);
    };
    compare(out, what, line(before, static_cast<size_t>(differs.first - before.begin())),
            line(after, static_cast<size_t>(differs.second - after.begin())));
  }
}

}  // namespace

ProcessSettings process_settings() {
  ProcessSettings out;
  out.signal_handlers = signal_handlers();
  out.signal_mask = signal_mask();
  out.floating_point = floating_point();
  out.locale = std::setlocale(LC_ALL, nullptr);
  out.working_directory = working_directory();
  out.file_mask = file_mask();
  out.environment = environment();
  out.standard_files = standard_files();
  out.open_mp_threads = open_mp_threads();
  out.random_numbers = random_numbers();
  return out;
}

std::string difference(const ProcessSettings& before, const ProcessSettings& after) {
  std::string out;
  compare_lines(out, "the signal handlers", before.signal_handlers, after.signal_handlers);
  compare(out, "the signal mask", before.signal_mask, after.signal_mask);
  compare(out, "the floating-point mode", before.floating_point, after.floating_point);
  compare(out, "the locale", before.locale, after.locale);
  compare(out, "the working directory", before.working_directory, after.working_directory);
  compare(out, "the file mode mask", before.file_mask, after.file_mask);
  compare_lines(out, "the environment", before.environment, after.environment);
  compare_lines(out, "the standard files", before.standard_files, after.standard_files);
  if (!before.open_mp_threads.empty()) {  // a runtime that was mapped meanwhile has a number now
    compare(out, "the number of OpenMP threads", before.open_mp_threads, after.open_mp_threads);
  }
  if (before.random_numbers != after.random_numbers) {
    out += (out.empty() ? "" : "; ") + std::string("the C library's random numbers (srand, rand)");
  }
  return out;
}

std::string& changed_by_mapping() {
  static std::string changed;
  return changed;
}

ProcessResources process_resources() {
  ProcessResources out;
  out.threads = count_threads();
  out.open_files = open_files();
  return out;
}

namespace {

/// Mapped and resident bytes.
std::pair<size_t, size_t> memory_sizes() {
  size_t mapped = 0;
  size_t resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%zu %zu", &mapped, &resident) != 2) {
      mapped = resident = 0;
    }
    std::fclose(file);
  }
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return {mapped * page, resident * page};
}

}  // namespace

size_t resident_bytes() { return memory_sizes().second; }

void limit_memory([[maybe_unused]] size_t more_bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlim_t most = memory_sizes().first + more_bytes;
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

size_t heap_bytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
#endif
}

std::string left_behind(const ProcessResources& before) {
  for (int i = 0; i < 1000 && count_threads() > before.threads; ++i) {
    usleep(1000);
  }
  std::string out;
  const size_t threads = count_threads();
  if (threads > before.threads) {
    out = std::to_string(threads - before.threads) + " threads";
  }
  for (const std::string& file : open_files()) {
    if (!std::binary_search(before.open_files.begin(), before.open_files.end(), file)) {
      out += (out.empty() ? "" : ", ") + std::string("file ") + file;
    }
  }
  return out;
}

}  // namespace ciuic::testing
