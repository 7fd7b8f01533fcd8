// SPDX-License-Identifier: MIT
#include "core/plugin/trampoline/crumb_board.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "core/log/failure.h"
#include "core/plugin/trampoline/breadcrumb.h"
#include "core/plugin/trampoline/slots.h"

namespace ciuic::core {

struct CrumbBoard::Memory {
  /// More threads than this that call plugins, or names, are not on the board.
  static constexpr uint32_t kMostStacks = 128;
  static constexpr uint32_t kMostNames = 512;
  struct Name {
    std::atomic<const void*> key{nullptr};
    std::array<char, 120> text{};
  };

  std::atomic<uint32_t> is_in_use{0};
  std::atomic<uint32_t> num_names{0};
  std::atomic<uint32_t> num_stacks{0};
  std::array<Name, kMostNames> names;
  alignas(64) std::array<std::array<std::byte, sizeof(CrumbStack)>, kMostStacks> stacks;

  /// What a key means; NULL when it was never named.
  [[nodiscard]] const char* text_of(const void* key) const noexcept {
    const uint32_t count = std::min(num_names.load(std::memory_order_acquire), kMostNames);
    for (uint32_t i = 0; i < count; ++i) {
      if (names[i].key.load(std::memory_order_acquire) == key) {
        return names[i].text.data();
      }
    }
    return nullptr;
  }
};

namespace {

/// A text of the board, which the rank's plugin could have overwritten.
std::string bounded(const char* text) {
  constexpr size_t kMost = sizeof(CrumbBoard::Memory::Name::text) - 1;
  return text == nullptr ? "?" : std::string(text, strnlen(text, kMost));
}

static_assert(std::atomic<uint64_t>::is_always_lock_free, "the board is shared by processes");
static_assert(sizeof(CrumbStack) % alignof(CrumbStack) == 0);

/// This process's board, if it is a rank of a launcher of ours.
constinit std::atomic<CrumbBoard::Memory*> mine{nullptr};

CrumbBoard::Memory* map(int fd) {
  void* memory =
      mmap(nullptr, sizeof(CrumbBoard::Memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<CrumbBoard::Memory*>(memory);
}

[[noreturn]] void fail() {
  throw Failure(ExitCode::Environment,
                std::string("cannot share memory with a rank: ") + std::strerror(errno));
}

}  // namespace

CrumbBoard::CrumbBoard() : fd_(memfd_create("ciuic-crumbs", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (fd_ < 0 || ftruncate(fd_, sizeof(Memory)) != 0 ||
      fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 ||
      (memory_ = map(fd_)) == nullptr) {
    const int error = errno;
    if (fd_ >= 0) {
      close(fd_);
    }
    errno = error;
    fail();
  }
  new (memory_) Memory;
}

CrumbBoard::CrumbBoard(CrumbBoard&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), memory_(std::exchange(other.memory_, nullptr)) {}

CrumbBoard::~CrumbBoard() {
  if (memory_ != nullptr) {
    munmap(memory_, sizeof(Memory));
    close(fd_);
  }
}

bool CrumbBoard::is_in_use() const noexcept {
  return memory_->is_in_use.load(std::memory_order_acquire) != 0;
}

std::vector<std::string> CrumbBoard::inside(pid_t pid) const {
  std::vector<std::tuple<bool, bool, std::string>> found;  // only waits, not the main thread, text
  const uint32_t count =
      std::min(memory_->num_stacks.load(std::memory_order_acquire), Memory::kMostStacks);
  for (uint32_t i = 0; i < count; ++i) {
    const auto& stack = *reinterpret_cast<const CrumbStack*>(memory_->stacks[i].data());
    Crumb crumb;
    if (const uint32_t depth = stack.depth(); depth > 0 && stack.read(depth - 1, crumb)) {
      found.emplace_back(crumb.is_wait, stack.thread() != pid,
                         "plugin " + bounded(memory_->text_of(crumb.plugin)) + " in " +
                             bounded(memory_->text_of(crumb.function)) +
                             (crumb.is_wait ? " (waiting for peers)" : "") + ", call " +
                             std::to_string(crumb.sequence));
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> texts;
  for (auto& [waits, is_other, text] : found) {
    texts.push_back(std::move(text));
  }
  return texts;
}

void CrumbBoard::use(int fd) {
  Memory* memory = map(fd);
  if (memory == nullptr) {
    fail();
  }
  mine.store(memory, std::memory_order_release);
  for (const char* call : kLifeCalls) {
    name(call, call);
  }
  memory->is_in_use.store(1, std::memory_order_release);
}

void* CrumbBoard::room_for_stack() noexcept {
  Memory* memory = mine.load(std::memory_order_acquire);
  if (memory == nullptr) {
    return nullptr;
  }
  uint32_t n = memory->num_stacks.load(std::memory_order_relaxed);
  while (n < Memory::kMostStacks && !memory->num_stacks.compare_exchange_weak(n, n + 1)) {
  }
  return n < Memory::kMostStacks ? memory->stacks[n].data() : nullptr;
}

void CrumbBoard::name(const void* key, const char* text) noexcept {
  Memory* memory = mine.load(std::memory_order_acquire);
  if (memory == nullptr || memory->text_of(key) != nullptr) {
    return;
  }
  uint32_t n = memory->num_names.load(std::memory_order_relaxed);
  while (n < Memory::kMostNames && !memory->num_names.compare_exchange_weak(n, n + 1)) {
  }
  if (n < Memory::kMostNames) {
    Memory::Name& name = memory->names[n];
    std::strncpy(name.text.data(), text, name.text.size() - 1);
    name.key.store(key, std::memory_order_release);
  }
}

}  // namespace ciuic::core
