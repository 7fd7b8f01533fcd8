// SPDX-License-Identifier: MIT
//
// The host's kv service as the store through which Gloo's ranks exchange addresses.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "communicator/key_value.h"

namespace ciuic::plugins::gloo {

class KvStore final : public c10d::Store {
 public:
  KvStore(KeyValue kv, std::chrono::milliseconds timeout)
      : c10d::Store(timeout), kv_(std::move(kv)), deadline_(Clock::now() + timeout) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<KvStore>(kv_, timeout_);
  }
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    kv_.set(key, std::string(value.begin(), value.end()));
  }
  std::vector<uint8_t> get(const std::string& key) override {
    const std::string value = must_get(key, deadline_);
    return {value.begin(), value.end()};
  }
  int64_t add(const std::string& key, int64_t value) override { return kv_.add(key, value); }
  bool deleteKey(const std::string& key) override {
    kv_.remove(key);
    return true;
  }
  bool check(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) {
      if (!kv_.get(key, Clock::now())) {
        return false;
      }
    }
    return true;
  }
  int64_t getNumKeys() override {
    throw Error(CIUIC_UNIMPLEMENTED, "the kv service does not count keys");
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    const auto deadline = std::min(deadline_, Clock::now() + timeout);
    for (const std::string& key : keys) {
      (void)must_get(key, deadline);
    }
  }

 private:
  [[nodiscard]] std::string must_get(const std::string& key, Clock::time_point deadline) const {
    auto value = kv_.get(key, deadline);
    if (!value) {
      throw Error(CIUIC_DEADLINE, "a peer did not publish its address (key " + key + ")");
    }
    return *std::move(value);
  }

  KeyValue kv_;
  Clock::time_point deadline_;
};

}  // namespace ciuic::plugins::gloo
