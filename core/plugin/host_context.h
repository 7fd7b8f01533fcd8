// SPDX-License-Identifier: MIT
//
// The host's side of one instance: its ciuic_host table, the services it may ask for, and the
// account of its memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/abi/host.h>

#include "core/log/log.h"
#include "core/plugin/io_service.h"

namespace ciuic::core {

/// Where device memory comes from. The training library brings LibTorch's allocators; without it
/// there is host memory only.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// NULL: out of memory, or a device that is not served.
  virtual void* allocate(ciuic_device device, size_t bytes, size_t alignment) noexcept = 0;
  virtual void deallocate(ciuic_device device, void* memory, size_t bytes) noexcept = 0;
};

/// Aligned host memory from the C library.
MemorySource& host_memory();

struct MemoryCounts {
  int64_t allocations = 0;
  int64_t allocated_bytes = 0;
  int64_t frees = 0;

  MemoryCounts operator-(const MemoryCounts& since) const {
    return {allocations - since.allocations, allocated_bytes - since.allocated_bytes,
            frees - since.frees};
  }
};

/// What plugins took from host_memory() in this process, and gave back.
MemoryCounts host_memory_counts();

/// Thread rule: the table is class A; add_service belongs to the control thread, before create.
class HostContext {
 public:
  HostContext(std::string plugin, Log& log, MemorySource& memory = host_memory());
  HostContext(const HostContext&) = delete;
  HostContext& operator=(const HostContext&) = delete;

  [[nodiscard]] const ciuic_host* table() const noexcept { return &table_; }
  [[nodiscard]] const std::string& plugin() const noexcept { return plugin_; }
  /// The table must outlive this object.
  void add_service(const std::string& name, const void* table) { services_[name] = table; }
  /// Makes a service of class S from (table(), args...) that lives as long as this object, and
  /// offers its table.
  template <typename S, typename... Args>
  S& own_service(const std::string& name, Args&&... args) {
    auto service = std::make_shared<S>(table(), std::forward<Args>(args)...);
    add_service(name, address_of(service->table()));
    owned_.push_back(service);
    return *service;
  }
  /// Bytes that the instance holds now.
  [[nodiscard]] int64_t live_bytes() const noexcept { return live_bytes_.load(); }

 private:
  static ciuic_status* status_new(void*, int32_t code, uint32_t flags, int32_t peer,
                                  ciuic_str message);
  static int32_t status_get(void*, const ciuic_status*, uint32_t*, int32_t*, ciuic_str*);
  static void status_free(void*, ciuic_status*);
  static int32_t log_enabled(void*, int32_t level);
  static void log(void*, int32_t level, ciuic_str message, ciuic_array fields);
  static void* alloc(void*, ciuic_device, size_t bytes, size_t align, const ciuic_stream*);
  static void dealloc(void*, ciuic_device, void*, size_t bytes, const ciuic_stream*);
  static const void* service(void*, const char* name, uint32_t min_version);

  template <typename Table>
  static const void* address_of(const Table& table) {
    return &table;
  }
  template <typename Table>
  static const void* address_of(const Table* table) {
    return table;
  }

  std::string plugin_;
  Log& log_;
  MemorySource& memory_;
  ciuic_host table_;
  std::map<std::string, const void*, std::less<>> services_;
  std::atomic<int64_t> live_bytes_{0};
  IoService io_;
  std::vector<std::shared_ptr<void>> owned_;  // last: its members use the table
};

}  // namespace ciuic::core
