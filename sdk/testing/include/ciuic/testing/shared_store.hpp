// SPDX-License-Identifier: MIT
//
// Keys and values in memory that forked processes share, and "ciuic.kv" on top of it. Made before
// the fork; a process that is killed while it holds the lock locks nobody out.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <pthread.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <system_error>
#include <thread>

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>

namespace ciuic::testing {

/// Small values, never many: a list that is searched. Any thread of any process.
class SharedStore {
 public:
  explicit SharedStore(size_t bytes = size_t{16} << 20) : bytes_(bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::system_error(errno, std::generic_category(), "cannot share memory");
    }
    head_ = static_cast<Head*>(memory);
    head_->used = sizeof(Head);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&head_->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  SharedStore(const SharedStore&) = delete;
  SharedStore& operator=(const SharedStore&) = delete;
  ~SharedStore() { munmap(head_, bytes_); }

  void set(std::string_view key, std::string_view value) {
    const Lock lock(*this);
    put(key, value);
  }
  [[nodiscard]] std::optional<std::string> find(std::string_view key) {
    const Lock lock(*this);
    const Entry* e = entry(key);
    return e == nullptr ? std::nullopt : std::optional<std::string>(std::string(value_of(*e)));
  }
  /// Values that are added to are decimal text.
  int64_t add(std::string_view key, int64_t delta) {
    const Lock lock(*this);
    const Entry* e = entry(key);
    const int64_t sum = delta + (e == nullptr ? 0 : std::stoll(std::string(value_of(*e))));
    put(key, std::to_string(sum));
    return sum;
  }
  void remove(std::string_view key) {
    const Lock lock(*this);
    if (Entry* e = entry(key)) {
      e->is_there = 0;
    }
  }
  /// Waits for a key; nothing at the deadline. timeout 0 asks once, < 0 has no limit.
  [[nodiscard]] std::optional<std::string> get(std::string_view key,
                                               std::chrono::nanoseconds timeout) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    while (true) {
      std::optional<std::string> value = find(key);
      const bool is_late = timeout.count() >= 0 && Clock::now() - begin >= timeout;
      if (value || is_late) {
        return value;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

 private:
  struct Head {
    pthread_mutex_t mutex;
    uint64_t used;   // bytes of the whole memory
    uint64_t first;  // offset of an entry; 0: none
  };
  struct Entry {  // the key's bytes follow, then the value's
    uint64_t next;
    uint32_t key_size, value_size, capacity, is_there;
  };
  class Lock {
   public:
    explicit Lock(SharedStore& store) : mutex_(&store.head_->mutex) {
      if (pthread_mutex_lock(mutex_) == EOWNERDEAD) {
        pthread_mutex_consistent(mutex_);
      }
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() { pthread_mutex_unlock(mutex_); }

   private:
    pthread_mutex_t* mutex_;
  };

  char* at(uint64_t offset) const { return reinterpret_cast<char*>(head_) + offset; }
  static std::string_view key_of(const Entry& e) {
    return {reinterpret_cast<const char*>(&e + 1), e.key_size};
  }
  static std::string_view value_of(const Entry& e) {
    return {reinterpret_cast<const char*>(&e + 1) + e.key_size, e.value_size};
  }
  Entry* entry(std::string_view key) const {
    for (uint64_t offset = head_->first; offset != 0;) {
      auto* e = reinterpret_cast<Entry*>(at(offset));
      if (e->is_there != 0 && key_of(*e) == key) {
        return e;
      }
      offset = e->next;
    }
    return nullptr;
  }
  void put(std::string_view key, std::string_view value) {
    Entry* e = entry(key);
    if (e != nullptr && e->capacity < value.size()) {
      e->is_there = 0;
      e = nullptr;
    }
    if (e == nullptr) {
      e = append(key, value.size());
    }
    std::memcpy(const_cast<char*>(value_of(*e).data()), value.data(), value.size());
    e->value_size = static_cast<uint32_t>(value.size());
    e->is_there = 1;
  }
  Entry* append(std::string_view key, size_t capacity) {
    const uint64_t offset = head_->used;
    const uint64_t end = (offset + sizeof(Entry) + key.size() + capacity + 15) / 16 * 16;
    if (end > bytes_) {
      throw Error(CIUIC_EXHAUSTED, "the test's key-value store is full");
    }
    auto* e = reinterpret_cast<Entry*>(at(offset));
    e->next = head_->first;
    e->key_size = static_cast<uint32_t>(key.size());
    e->value_size = 0;
    e->capacity = static_cast<uint32_t>(capacity);
    std::memcpy(const_cast<char*>(key_of(*e).data()), key.data(), key.size());
    head_->used = end;
    head_->first = offset;
    return e;
  }

  size_t bytes_;
  Head* head_ = nullptr;
};

/// "ciuic.kv" for one rank. The prefix stands for the plugin's name and the run's generation.
class SharedKv {
 public:
  SharedKv(Host host, SharedStore& store, std::string prefix)
      : host_(host), store_(store), prefix_(std::move(prefix)) {
    table_.struct_size = sizeof(table_);
    table_.ctx = this;
    table_.set = [](void* ctx, ciuic_str key, ciuic_str value) {
      SharedKv& kv = from(ctx);
      return guard(kv.host_, [&] { kv.store_.set(kv.full(key), to_view(value)); });
    };
    table_.get = [](void* ctx, ciuic_str key, int64_t timeout_ns, void* buffer, size_t* size) {
      return from(ctx).get(key, timeout_ns, buffer, size);
    };
    table_.add = [](void* ctx, ciuic_str key, int64_t delta, int64_t* result) {
      SharedKv& kv = from(ctx);
      return guard(kv.host_, [&] { *result = kv.store_.add(kv.full(key), delta); });
    };
    table_.remove = [](void* ctx, ciuic_str key) {
      SharedKv& kv = from(ctx);
      return guard(kv.host_, [&] { kv.store_.remove(kv.full(key)); });
    };
  }
  SharedKv(const SharedKv&) = delete;
  SharedKv& operator=(const SharedKv&) = delete;

  [[nodiscard]] const ciuic_kv_service* table() const noexcept { return &table_; }

 private:
  static SharedKv& from(void* ctx) { return *static_cast<SharedKv*>(ctx); }
  std::string full(ciuic_str key) const { return prefix_ + std::string(to_view(key)); }

  ciuic_status* get(ciuic_str key, int64_t timeout_ns, void* buffer, size_t* size) const {
    const std::string name = full(key);
    const auto value = store_.get(name, std::chrono::nanoseconds(timeout_ns));
    if (!value) {
      return host_.status(CIUIC_DEADLINE, "key " + name + " is not there");
    }
    const size_t room = *size;
    *size = value->size();
    if (room < value->size()) {
      return host_.status(CIUIC_EXHAUSTED, "key " + name + " has " + std::to_string(*size) +
                                               " bytes, the buffer " + std::to_string(room));
    }
    std::memcpy(buffer, value->data(), value->size());
    return nullptr;
  }

  Host host_;
  SharedStore& store_;
  std::string prefix_;
  ciuic_kv_service table_{};
};

}  // namespace ciuic::testing
