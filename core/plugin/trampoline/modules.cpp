// SPDX-License-Identifier: MIT
#include "core/plugin/trampoline/modules.h"

#include <array>
#include <atomic>
#include <cstring>
#include <link.h>
#include <mutex>

namespace ciuic::core {
namespace {

struct Module {
  uintptr_t begin;
  uintptr_t end;
  char name[64];
};

/// Grows at its end only, so a handler may read it at any time. A process with more libraries than
/// this names the rest "unknown".
constexpr size_t kMost = 512;
constinit std::array<Module, kMost> modules{};
constinit std::atomic<size_t> num_modules{0};

bool is_known(uintptr_t begin) {
  for (size_t i = 0; i < num_modules.load(std::memory_order_relaxed); ++i) {
    if (modules[i].begin == begin) {
      return true;
    }
  }
  return false;
}

void copy_base_name(char* out, size_t size, const char* path) {
  const char* slash = std::strrchr(path, '/');
  const char* base = slash != nullptr ? slash + 1 : path;
  std::strncpy(out, base[0] != '\0' ? base : "the program itself", size - 1);
}

int add(dl_phdr_info* info, size_t, void*) {
  uintptr_t begin = UINTPTR_MAX;
  uintptr_t end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD) {
      const uintptr_t at = info->dlpi_addr + segment.p_vaddr;
      begin = at < begin ? at : begin;
      end = at + segment.p_memsz > end ? at + segment.p_memsz : end;
    }
  }
  const size_t n = num_modules.load(std::memory_order_relaxed);
  if (begin < end && n < kMost && !is_known(begin)) {
    modules[n].begin = begin;
    modules[n].end = end;
    copy_base_name(modules[n].name, sizeof(modules[n].name), info->dlpi_name);
    num_modules.store(n + 1, std::memory_order_release);
  }
  return 0;
}

}  // namespace

void record_modules() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  dl_iterate_phdr(&add, nullptr);
}

const char* module_at(uintptr_t address) noexcept {
  const size_t n = num_modules.load(std::memory_order_acquire);
  for (size_t i = 0; i < n; ++i) {
    if (address >= modules[i].begin && address < modules[i].end) {
      return modules[i].name;
    }
  }
  return "unknown";
}

}  // namespace ciuic::core
