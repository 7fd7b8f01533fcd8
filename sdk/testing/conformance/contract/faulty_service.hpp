// SPDX-License-Identifier: MIT
//
// A service of the host that fails when told to: the same table, with a count in front of every
// function that can report an error.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <type_traits>

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>

namespace ciuic::testing::contract {

/// Which call fails. Any thread.
class FaultPlan {
 public:
  /// The next call number `call`, counted from 0, fails with `code`.
  void strike(int64_t call, int32_t code) {
    const std::lock_guard<std::mutex> lock(mutex_);
    call_ = call;
    code_ = code;
    count_ = 0;
    struck_.clear();
  }
  void rest() { strike(-1, CIUIC_OK); }

  /// NULL, or the failure of this call.
  ciuic_status* pass(const Host& host, const char* function) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (count_++ != call_) {
      return nullptr;
    }
    struck_ = function;
    return host.status(code_, std::string("injected fault in ") + function);
  }
  /// Calls since the last strike or rest.
  [[nodiscard]] int64_t count() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }
  /// What failed; empty: there were fewer calls.
  [[nodiscard]] std::string struck() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return struck_;
  }

 private:
  mutable std::mutex mutex_;
  int64_t call_ = -1;
  int64_t count_ = 0;
  int32_t code_ = CIUIC_OK;
  std::string struck_;
};

/// Decorates a table whose functions take its ctx first.
template <typename Table>
class FaultyService {
 public:
  FaultyService(Host host, FaultPlan& plan, const Table& inner)
      : host_(host), plan_(plan), inner_(inner), table_(inner) {
    table_.ctx = this;
  }
  FaultyService(const FaultyService&) = delete;
  FaultyService& operator=(const FaultyService&) = delete;

  [[nodiscard]] const Table* table() const { return &table_; }

  /// Puts the count in front of a function.
  template <auto Member>
  FaultyService& guard(const char* name) {
    names<Member>() = name;
    install<Member>(table_.*Member);
    return *this;
  }

 private:
  template <auto Member>
  static const char*& names() {
    static const char* name = "";
    return name;
  }
  template <auto Member, typename Result, typename... Args>
  void install(Result (*)(void*, Args...)) {
    table_.*Member = [](void* ctx, Args... args) -> Result {
      auto& self = *static_cast<FaultyService*>(ctx);
      if constexpr (std::is_same_v<Result, ciuic_status*>) {
        if (ciuic_status* failed = self.plan_.pass(self.host_, names<Member>())) {
          return failed;
        }
      }
      return (self.inner_.*Member)(self.inner_.ctx, args...);
    };
  }

  Host host_;
  FaultPlan& plan_;
  Table inner_;
  Table table_;
};

}  // namespace ciuic::testing::contract
