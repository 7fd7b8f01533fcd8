// SPDX-License-Identifier: MIT
//
// The host's "ciuic.kv" service behind a prefix, with C++ types.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>

namespace ciuic::plugins {

using Clock = std::chrono::steady_clock;

/// Copyable; any thread. Throws what the host says.
class KeyValue {
 public:
  KeyValue(const Host& host, std::string prefix)
      : host_(host),
        service_(&host.service<ciuic_kv_service>("ciuic.kv")),
        prefix_(std::move(prefix)) {}

  /// The same store, further down.
  [[nodiscard]] KeyValue below(const std::string& name) const {
    KeyValue child = *this;
    child.prefix_ += name + "/";
    return child;
  }

  void set(const std::string& key, const std::string& value) const {
    const std::string name = prefix_ + key;
    host_.check(service_->set(service_->ctx, to_str(name), to_str(value)));
  }

  [[nodiscard]] int64_t add(const std::string& key, int64_t delta) const {
    const std::string name = prefix_ + key;
    int64_t result = 0;
    host_.check(service_->add(service_->ctx, to_str(name), delta, &result));
    return result;
  }

  void remove(const std::string& key) const {
    const std::string name = prefix_ + key;
    host_.check(service_->remove(service_->ctx, to_str(name)));
  }

  /// Nothing at the deadline; a deadline in the past asks once.
  [[nodiscard]] std::optional<std::string> get(const std::string& key,
                                               Clock::time_point deadline) const {
    const std::string name = prefix_ + key;
    std::string value(256, '\0');
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
      size_t size = value.size();
      ciuic_status* status =
          service_->get(service_->ctx, to_str(name), left < 0 ? 0 : left, value.data(), &size);
      if (status == nullptr) {
        value.resize(size);
        return value;
      }
      const Error error = host_.take(status);
      if (error.code() == CIUIC_DEADLINE) {
        return std::nullopt;
      }
      if (error.code() != CIUIC_EXHAUSTED || size <= value.size()) {
        throw error;
      }
      value.resize(size);
    }
  }

 private:
  Host host_;
  const ciuic_kv_service* service_;
  std::string prefix_;
};

}  // namespace ciuic::plugins
