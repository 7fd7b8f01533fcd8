// SPDX-License-Identifier: MIT
#include "heap.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <unistd.h>

#include <ciuic/error.hpp>

namespace ciuic::plugins::shm {
namespace {

/// The first page of a piece. Peers unmap what its owner has freed.
struct Head {
  std::atomic<uint64_t> segment;
  std::atomic<uint32_t> is_freed;
};

Head& head_of(const SharedFile& file) { return *reinterpret_cast<Head*>(file.data()); }

}  // namespace

/// Numbers of a process that has the number of an earlier one do not repeat.
Heap::Heap()
    : salt_(static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())
            << 16) {}

void* Heap::alloc(size_t bytes) {
  if (bytes > static_cast<size_t>(PTRDIFF_MAX) - 2 * kPage) {
    throw Error(CIUIC_EXHAUSTED, "shm: no " + std::to_string(bytes) + " bytes of shared memory");
  }
  const size_t pages = (bytes + kPage - 1) / kPage + 1;
  SharedFile file = SharedFile::make("ciuic-memory", pages * kPage);
  const std::lock_guard lock(mutex_);
  head_of(file).segment = salt_ + ++num_allocs_;
  char* memory = file.data() + kPage;
  own_.emplace(memory, std::move(file));
  return memory;
}

bool Heap::free(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = own_.find(static_cast<const char*>(memory));
  if (found == own_.end()) {
    return false;
  }
  head_of(found->second).is_freed = 1;
  own_.erase(found);
  return true;
}

Address Heap::find(const char* data, int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto after = own_.upper_bound(data);
  if (after == own_.begin() || data == nullptr) {
    return {};
  }
  const auto& [first, file] = *--after;
  const auto size = static_cast<int64_t>(file.bytes());
  const int64_t offset = data - file.data();
  if (offset + bytes > size) {
    return {};
  }
  return {head_of(file).segment, offset, file.bytes(), static_cast<int32_t>(::getpid()),
          file.descriptor()};
}

char* Heap::peer_memory(const Address& address) {
  const std::lock_guard lock(mutex_);
  const std::pair key{address.pid, address.segment};
  auto found = peers_.find(key);
  if (found == peers_.end()) {
    forget_freed();
    SharedFile file = SharedFile::open(address.pid, address.descriptor, address.bytes);
    if (head_of(file).segment != address.segment) {
      throw Error(CIUIC_UNAVAILABLE,
                  "shm: process " + std::to_string(address.pid) + " has freed memory in use");
    }
    found = peers_.emplace(key, std::move(file)).first;
  }
  return found->second.data() + address.offset;
}

void Heap::forget_freed() {
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    peer = head_of(peer->second).is_freed != 0 ? peers_.erase(peer) : std::next(peer);
  }
}

}  // namespace ciuic::plugins::shm
