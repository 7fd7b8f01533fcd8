// SPDX-License-Identifier: MIT
//
// The host's table for one instance, as a test sees it: statuses and memory are counted, logs are
// kept, services are what the test offers. Memory comes filled with NaN bits and ends in a red
// zone, so that reads before writes and writes past the end are seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/host.h>
#include <ciuic/host.hpp>
#include <ciuic/view.hpp>

namespace ciuic::testing {

struct LogLine {
  int32_t level;
  std::string message;
};

/// Any thread. Must outlive the instances that were made with it.
class TestHost {
 public:
  TestHost() {
    table_.struct_size = sizeof(table_);
    table_.abi_minor = CIUIC_ABI_MINOR;
    table_.ctx = this;
    table_.status_new = [](void* ctx, int32_t code, uint32_t flags, int32_t peer,
                           ciuic_str message) {
      return from(ctx).make_status(code, flags, peer, message);
    };
    table_.status_get = [](void* ctx, const ciuic_status* s, uint32_t* flags, int32_t* peer,
                           ciuic_str* message) {
      return from(ctx).get_status(s, flags, peer, message);
    };
    table_.status_free = [](void* ctx, ciuic_status* s) { from(ctx).free_status(s); };
    table_.log_enabled = [](void*, int32_t) { return 1; };
    table_.log = [](void* ctx, int32_t level, ciuic_str message, ciuic_array) {
      TestHost& h = from(ctx);
      const std::lock_guard<std::mutex> lock(h.mutex_);
      h.logs_.push_back({level, std::string(to_view(message))});
    };
    table_.alloc = [](void* ctx, ciuic_device device, size_t bytes, size_t align,
                      const ciuic_stream*) { return from(ctx).allocate(device, bytes, align); };
    table_.dealloc = [](void* ctx, ciuic_device, void* memory, size_t bytes, const ciuic_stream*) {
      from(ctx).deallocate(memory, bytes);
    };
    table_.service = [](void* ctx, const char* name, uint32_t) { return from(ctx).find(name); };
  }
  TestHost(const TestHost&) = delete;
  TestHost& operator=(const TestHost&) = delete;

  [[nodiscard]] const ciuic_host* table() const noexcept { return &table_; }
  [[nodiscard]] Host host() const noexcept { return Host(&table_); }

  /// Offers a service's table under a name; NULL takes it away.
  void offer(const std::string& name, const void* service) {
    const std::lock_guard<std::mutex> lock(mutex_);
    services_[name] = service;
  }

  // ---- what the instance did ----

  [[nodiscard]] std::vector<LogLine> logs() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return logs_;
  }
  void forget_logs() {
    const std::lock_guard<std::mutex> lock(mutex_);
    logs_.clear();
  }
  [[nodiscard]] bool logged(std::string_view part) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const LogLine& line : logs_) {
      if (line.message.find(part) != std::string::npos) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] int64_t live_bytes() const { return locked(live_bytes_); }
  [[nodiscard]] int64_t peak_bytes() const { return locked(peak_bytes_); }
  [[nodiscard]] int64_t allocations() const { return locked(allocations_); }
  [[nodiscard]] int64_t live_statuses() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int64_t>(statuses_.size());
  }
  /// Frees of unknown memory or of another size, and writes past an end.
  [[nodiscard]] int64_t memory_faults() const { return locked(memory_faults_); }
  /// Statuses freed twice, used after they were freed, or not made here.
  [[nodiscard]] int64_t status_faults() const { return locked(status_faults_); }
  /// Everything that was taken came back, once and whole.
  [[nodiscard]] bool balanced() const { return imbalance().empty(); }
  /// What did not come back, in words; empty: nothing.
  [[nodiscard]] std::string imbalance() const {
    std::string out;
    const auto add = [&](int64_t count, const char* what) {
      if (count != 0) {
        out += (out.empty() ? "" : ", ") + std::to_string(count) + what;
      }
    };
    add(live_bytes(), " bytes of the host's memory were not given back");
    add(live_statuses(), " statuses were not freed");
    add(memory_faults(),
        " times memory was freed that was not given, with another size, or after "
        "a write past its end");
    add(status_faults(), " times a status was used that the host had not made, or freed twice");
    return out;
  }
  /// Services that were asked for, in order, without repeats.
  [[nodiscard]] std::vector<std::string> asked() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return asked_;
  }

  void forget_asked() {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_.clear();
  }

  /// Lets the next `count` allocations pass and then fails all; negative: never.
  void fail_allocations_after(int64_t count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    fail_after_ = count < 0 ? -1 : allocations_ + count;
  }

 private:
  struct Status {
    int32_t code;
    uint32_t flags;
    int32_t peer;
    std::string message;
  };
  static constexpr size_t kRedZone = 64;

  static TestHost& from(void* ctx) { return *static_cast<TestHost*>(ctx); }
  int64_t locked(const int64_t& counter) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return counter;
  }

  ciuic_status* make_status(int32_t code, uint32_t flags, int32_t peer, ciuic_str message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto* status = reinterpret_cast<ciuic_status*>(
        new Status{code, flags, peer, std::string(to_view(message))});
    statuses_.insert(status);
    return status;
  }
  int32_t get_status(const ciuic_status* s, uint32_t* flags, int32_t* peer, ciuic_str* message) {
    static const Status unknown{CIUIC_INTERNAL, 0, -1, "not a status of this host, or freed"};
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool is_known = statuses_.count(s) == 1;
    status_faults_ += is_known ? 0 : 1;
    const auto* status = is_known ? reinterpret_cast<const Status*>(s) : &unknown;
    if (flags != nullptr) {
      *flags = status->flags;
    }
    if (peer != nullptr) {
      *peer = status->peer;
    }
    if (message != nullptr) {
      *message = to_str(status->message);
    }
    return status->code;
  }
  void free_status(ciuic_status* s) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (statuses_.erase(s) == 0) {
      ++status_faults_;
      return;
    }
    delete reinterpret_cast<Status*>(s);
  }

  void* allocate(ciuic_device device, size_t bytes, size_t align) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (device.type != CIUIC_DEVICE_CPU || (fail_after_ >= 0 && allocations_ >= fail_after_)) {
      return nullptr;
    }
    ++allocations_;
    align = align < 64 ? 64 : align;
    const size_t whole = (bytes + kRedZone + align - 1) / align * align;
    char* memory = static_cast<char*>(std::aligned_alloc(align, whole));
    std::memset(memory, 0xFF, whole);
    blocks_[memory] = bytes;
    live_bytes_ += static_cast<int64_t>(bytes);
    peak_bytes_ = live_bytes_ > peak_bytes_ ? live_bytes_ : peak_bytes_;
    return memory;
  }
  void deallocate(void* memory, size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto block = blocks_.find(memory);
    if (block == blocks_.end() || block->second != bytes) {
      ++memory_faults_;
      return;
    }
    for (size_t i = 0; i < kRedZone; ++i) {
      if (static_cast<unsigned char*>(memory)[bytes + i] != 0xFF) {
        ++memory_faults_;
        break;
      }
    }
    live_bytes_ -= static_cast<int64_t>(bytes);
    blocks_.erase(block);
    std::free(memory);
  }
  const void* find(const char* name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) {
      asked_.emplace_back(name);
    }
    const auto service = services_.find(name);
    return service == services_.end() ? nullptr : service->second;
  }

  ciuic_host table_{};
  mutable std::mutex mutex_;
  std::vector<LogLine> logs_;
  std::map<std::string, const void*> services_;
  std::vector<std::string> asked_;
  std::map<void*, size_t> blocks_;
  std::set<const ciuic_status*> statuses_;
  int64_t live_bytes_ = 0;
  int64_t peak_bytes_ = 0;
  int64_t allocations_ = 0;
  int64_t status_faults_ = 0;
  int64_t memory_faults_ = 0;
  int64_t fail_after_ = -1;
};

}  // namespace ciuic::testing
