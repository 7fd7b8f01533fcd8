// SPDX-License-Identifier: MIT
#include "core/plugin/host_context.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include <ciuic/view.hpp>

struct ciuic_status {
  uint64_t mark;  // of what this host made: a plugin may give back any pointer
  int32_t code;
  uint32_t flags;
  int32_t peer;
  std::string message;
};

namespace ciuic::core {
namespace {

constexpr uint64_t kStatusMark = 0x7375746174736963;  // "cistatus"

bool is_ours(const ciuic_status* status) { return status->mark == kStatusMark; }

/// Handed out when a status itself cannot be allocated; never freed.
ciuic_status* out_of_memory() {
  static ciuic_status status{kStatusMark, CIUIC_EXHAUSTED, 0, -1, "out of memory"};
  return &status;
}

std::atomic<int64_t> allocations{0}, allocated_bytes{0}, frees{0};

class AlignedHostMemory final : public MemorySource {
 public:
  void* allocate(ciuic_device device, size_t bytes, size_t alignment) noexcept override {
    if (device.type != CIUIC_DEVICE_CPU) {
      return nullptr;
    }
    void* memory = nullptr;
    if (posix_memalign(&memory, std::max<size_t>(alignment, 64), std::max<size_t>(bytes, 1)) != 0) {
      return nullptr;
    }
    ++allocations;
    allocated_bytes += static_cast<int64_t>(bytes);
    return memory;
  }
  void deallocate(ciuic_device, void* memory, size_t) noexcept override {
    frees += memory != nullptr ? 1 : 0;
    std::free(memory);
  }
};

std::string render(ciuic_str message, ciuic_array fields) {
  std::string text(to_view(message));
  for (const ciuic_field& f : ArrayView<ciuic_field>(fields)) {
    text += " " + std::string(to_view(f.key)) + "=";
    if (f.type == CIUIC_TYPE_F64) {
      text += std::to_string(f.value.f);
    } else if (f.type == CIUIC_TYPE_STRING || f.type == CIUIC_TYPE_ENUM) {
      text += to_view(f.value.s);
    } else {
      text += std::to_string(f.value.i);
    }
  }
  return text;
}

HostContext& self(void* ctx) { return *static_cast<HostContext*>(ctx); }

}  // namespace

MemorySource& host_memory() {
  static AlignedHostMemory memory;
  return memory;
}

MemoryCounts host_memory_counts() { return {allocations, allocated_bytes, frees}; }

HostContext::HostContext(std::string plugin, Log& log, MemorySource& memory)
    : plugin_(std::move(plugin)),
      log_(log),
      memory_(memory),
      table_{sizeof(ciuic_host), CIUIC_ABI_MINOR,   this,   &status_new, &status_get, &status_free,
             &log_enabled,       &HostContext::log, &alloc, &dealloc,    &service},
      io_(&table_) {
  add_service("ciuic.io", &io_.table());
}

ciuic_status* HostContext::status_new(void*, int32_t code, uint32_t flags, int32_t peer,
                                      ciuic_str message) {
  try {
    return new ciuic_status{kStatusMark, code, flags, peer, std::string(to_view(message))};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

int32_t HostContext::status_get(void*, const ciuic_status* status, uint32_t* flags, int32_t* peer,
                                ciuic_str* message) {
  static const ciuic_status foreign{
      kStatusMark, CIUIC_INTERNAL, 0, -1,
      "it returned a status that is none of the host's, or one that was freed"};
  status = is_ours(status) ? status : &foreign;
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

void HostContext::status_free(void*, ciuic_status* status) {
  if (status != nullptr && status != out_of_memory() && is_ours(status)) {
    status->mark = 0;
    delete status;
  }
}

int32_t HostContext::log_enabled(void* ctx, int32_t level) {
  return self(ctx).log_.enabled(static_cast<LogLevel>(level)) ? 1 : 0;
}

void HostContext::log(void* ctx, int32_t level, ciuic_str message, ciuic_array fields) {
  HostContext& me = self(ctx);
  const int32_t bounded = std::clamp<int32_t>(level, CIUIC_LOG_TRACE, CIUIC_LOG_ERROR);
  me.log_.write(static_cast<LogLevel>(bounded), me.plugin_ + ": " + render(message, fields));
}

void* HostContext::alloc(void* ctx, ciuic_device device, size_t bytes, size_t align,
                         const ciuic_stream*) {
  HostContext& me = self(ctx);
  void* memory = me.memory_.allocate(device, bytes, align);
  if (memory != nullptr) {
    me.live_bytes_ += static_cast<int64_t>(bytes);
  }
  return memory;
}

void HostContext::dealloc(void* ctx, ciuic_device device, void* memory, size_t bytes,
                          const ciuic_stream*) {
  HostContext& me = self(ctx);
  me.memory_.deallocate(device, memory, bytes);
  me.live_bytes_ -= static_cast<int64_t>(bytes);
}

const void* HostContext::service(void* ctx, const char* name, uint32_t) {
  const HostContext& me = self(ctx);
  const auto found = me.services_.find(std::string_view(name));
  return found == me.services_.end() ? nullptr : found->second;
}

}  // namespace ciuic::core
