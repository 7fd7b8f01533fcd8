// SPDX-License-Identifier: MIT
//
// The host as an author sees it: logs, memory, services, and statuses as exceptions.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <ciuic/abi/host.h>
#include <ciuic/abi/services.h>
#include <ciuic/error.hpp>
#include <ciuic/view.hpp>

namespace ciuic {

/// A copyable handle on the host's table for one instance. Any thread.
class Host {
 public:
  Host() = default;
  explicit Host(const ciuic_host* host) : host_(host) {}

  [[nodiscard]] const ciuic_host* table() const noexcept { return host_; }

  /// Throws what a status says; frees it. NULL passes.
  void check(ciuic_status* status) const {
    if (status != nullptr) {
      raise(take(status));
    }
  }

  /// True for NULL; else frees the status, and the hook will fail with it (report). For code that
  /// is built without exceptions.
  [[nodiscard]] bool ok(ciuic_status* status) const {
    if (status != nullptr) {
      report(take(status));
      return false;
    }
    return true;
  }

  /// The error in a status, which is freed.
  [[nodiscard]] Error take(ciuic_status* status) const {
    Error error = read(status);
    host_->status_free(host_->ctx, status);
    return error;
  }

  /// The error in a borrowed status.
  [[nodiscard]] Error read(const ciuic_status* status) const {
    uint32_t flags = 0;
    int32_t peer = -1;
    ciuic_str message{nullptr, 0};
    const int32_t code = host_->status_get(host_->ctx, status, &flags, &peer, &message);
    return Error(code, std::string(to_view(message)), peer, flags);
  }

  [[nodiscard]] ciuic_status* status(int32_t code, std::string_view message, int32_t peer = -1,
                                     uint32_t flags = 0) const noexcept {
    return host_->status_new(host_->ctx, code, flags, peer, to_str(message));
  }
  [[nodiscard]] ciuic_status* status(const Error& e) const noexcept {
    return status(e.code(), e.what(), e.peer(), e.flags());
  }

  void log(int32_t level, std::string_view message) const {
    if (host_->log_enabled(host_->ctx, level) != 0) {
      host_->log(host_->ctx, level, to_str(message), ciuic_array{nullptr, 0, 0});
    }
  }
  void debug(std::string_view message) const { log(CIUIC_LOG_DEBUG, message); }
  void info(std::string_view message) const { log(CIUIC_LOG_INFO, message); }
  void warn(std::string_view message) const { log(CIUIC_LOG_WARN, message); }

  /// A service's table, or NULL when it is not here.
  template <typename Table>
  [[nodiscard]] const Table* find_service(const char* name) const {
    return static_cast<const Table*>(host_->service(host_->ctx, name, 0));
  }

  /// A service's table. Throws PRECONDITION when it is not here.
  template <typename Table>
  [[nodiscard]] const Table& service(const char* name) const {
    const Table* table = find_service<Table>(name);
    if (table == nullptr) {
      raise(Error(CIUIC_PRECONDITION, std::string("the host offers no service ") + name + " here"));
    }
    return *table;
  }

  [[nodiscard]] void* alloc(ciuic_device device, size_t bytes) const {
    void* memory = host_->alloc(host_->ctx, device, bytes, 0, nullptr);
    if (memory == nullptr) {
      raise(Error(CIUIC_EXHAUSTED, "cannot allocate " + std::to_string(bytes) + " bytes"));
    }
    return memory;
  }
  void dealloc(ciuic_device device, void* memory, size_t bytes) const noexcept {
    host_->dealloc(host_->ctx, device, memory, bytes, nullptr);
  }

 private:
  const ciuic_host* host_ = nullptr;
};

/// Device memory from the host, freed with the object. Move-only.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Host& host, ciuic_device device, size_t bytes)
      : host_(host),
        device_(device),
        bytes_(bytes),
        data_(bytes == 0 ? nullptr : host.alloc(device, bytes)) {}
  Buffer(Buffer&& o) noexcept
      : host_(o.host_),
        device_(o.device_),
        bytes_(o.bytes_),
        data_(std::exchange(o.data_, nullptr)) {}
  Buffer& operator=(Buffer&& o) noexcept {
    std::swap(host_, o.host_);
    std::swap(device_, o.device_);
    std::swap(bytes_, o.bytes_);
    std::swap(data_, o.data_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) {
      host_.dealloc(device_, data_, bytes_);
    }
  }

  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] char* bytes() const noexcept { return static_cast<char*>(data_); }
  [[nodiscard]] size_t size() const noexcept { return bytes_; }

 private:
  Host host_;
  ciuic_device device_{CIUIC_DEVICE_CPU, 0};
  size_t bytes_ = 0;
  void* data_ = nullptr;
};

namespace detail {

template <typename Body>
ciuic_status* run_guarded(const Host& host, Body& body) noexcept {
#if defined(__cpp_exceptions)
  try {
    body();
  } catch (const Error& e) {
    return host.status(e);
  } catch (const std::bad_alloc&) {
    return host.status(CIUIC_EXHAUSTED, "out of memory");
  } catch (const std::exception& e) {
    return host.status(CIUIC_INTERNAL, e.what());
  } catch (...) {
    return host.status(CIUIC_INTERNAL, "an exception that is no std::exception was thrown");
  }
#else
  body();
#endif
  const std::optional<Error>& reported = innermost_frame->reported;
  return reported ? host.status(*reported) : nullptr;
}

}  // namespace detail

/// Runs `body` and turns what it throws or reports into a status: the only place where exceptions
/// meet the boundary.
template <typename Body>
ciuic_status* guard(const Host& host, Body&& body) noexcept {
  detail::Frame frame{std::nullopt, detail::innermost_frame};
  detail::innermost_frame = &frame;
  ciuic_status* status = detail::run_guarded(host, body);
  detail::innermost_frame = frame.outer;
  return status;
}

}  // namespace ciuic
