// SPDX-License-Identifier: MIT
//
// The rendezvous of a run with one rank that ciuic started itself: a map. No port, no file, nothing
// to wait for.
#pragma once

#include <map>
#include <mutex>

#include "core/parallel/rendezvous.h"

namespace ciuic::core {

class LocalRendezvous final : public Rendezvous {
 public:
  void set(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
  }
  [[nodiscard]] std::optional<std::string> get(const std::string& key,
                                               std::chrono::nanoseconds) override {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
  int64_t add(const std::string& key, int64_t delta) override {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    const int64_t sum = (found == values_.end() ? 0 : std::stoll(found->second)) + delta;
    values_[key] = std::to_string(sum);
    return sum;
  }
  bool remove(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    return values_.erase(key) > 0;
  }
  [[nodiscard]] const std::vector<std::string>& members() const override { return members_; }
  [[nodiscard]] const Endpoint& endpoint() const override { return endpoint_; }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::vector<std::string> members_{own_name()};
  Endpoint endpoint_{"local", 0};
};

}  // namespace ciuic::core
