// SPDX-License-Identifier: MIT
#include "core/plugin/trampoline/call_guard.h"

#include <exception>

#include <ciuic/view.hpp>

namespace ciuic::core {
namespace {

/// The text of the exception that is being handled.
std::string current_text() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    return std::string("something that is no std::exception") +
           (type != nullptr ? std::string(" (") + type->name() + ")" : "");
  }
}

}  // namespace

void CallGuard::note_escaped(const char* function, uint64_t sequence) noexcept {
  const std::string text = std::string("it threw out of ") + function + ", call " +
                           std::to_string(sequence) + ": " + current_text();
  const std::lock_guard lock(mutex_);
  if (escaped_.empty()) {
    escaped_ = text;  // the first is the cause
  }
  has_escaped_.store(true, std::memory_order_release);
}

std::string CallGuard::escaped() const {
  const std::lock_guard lock(mutex_);
  return escaped_;
}

ciuic_status* CallGuard::taken(ciuic_status* status) const noexcept {
  if (status != nullptr) {
    host_->status_get(host_->ctx, status, nullptr, nullptr, nullptr);
  }
  return status;
}

ciuic_status* CallGuard::escaped_status() const noexcept {
  const std::string text = escaped();
  return host_->status_new(host_->ctx, CIUIC_INTERNAL, CIUIC_STATUS_FATAL, -1, to_str(text));
}

}  // namespace ciuic::core
