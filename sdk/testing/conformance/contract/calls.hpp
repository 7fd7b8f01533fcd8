// SPDX-License-Identifier: MIT
//
// Every call into the plugin that a level-2 test makes goes through here, so that a test can look
// around it, and so that an exception that comes out is blamed on the function it came out of.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <utility>

#include <ciuic/testing/conformance.hpp>

namespace ciuic::testing::contract {

/// Runs `call`, a bare call of the plugin's function of this name.
using Watch = std::function<void(const char* function, const std::function<void()>& call)>;

class Calls {
 public:
  explicit Calls(const TestHost& host, Watch watch = nullptr)
      : host_(host.host()), watch_(std::move(watch)) {}

  /// A call that returns a status: throws Error with what it reports.
  template <typename Call>
  void check(const char* function, Call&& call) const {
    ciuic_status* status = nullptr;
    run(function, [&] { status = call(); });
    if (status != nullptr) {
      const Error error = host_.take(status);
      throw Error(error.code(), std::string(function) + ": " + error.what(), error.peer(),
                  error.flags());
    }
  }

  /// A call that returns none.
  template <typename Call>
  void run(const char* function, Call&& call) const {
    const auto bare = [&] {
      try {
        call();
      } catch (const std::exception& e) {
        throw CheckFailed(std::string("an exception crossed the boundary out of ") + function +
                          ": \"" + e.what() + "\"; catch it inside and return a status");
      } catch (...) {
        throw CheckFailed(std::string("an exception crossed the boundary out of ") + function +
                          "; catch it inside and return a status");
      }
    };
    watch_ ? watch_(function, bare) : bare();
  }

  [[nodiscard]] const Host& host() const { return host_; }

  /// Waits for a work and releases it; NULL is done already. A work that does not end fails the
  /// test.
  void finish(ciuic_work* work, double patience) const;

 private:
  Host host_;
  Watch watch_;
};

/// An instance, destroyed through Calls.
class Instance {
 public:
  Instance(const TestContext& context, const TestHost& host, const Calls& calls,
           OptionValues own = {}, Seat seat = {});
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance() noexcept(false);

  void destroy();
  [[nodiscard]] ciuic_instance* self() const { return self_; }
  [[nodiscard]] const ciuic_descriptor& descriptor() const { return descriptor_; }
  [[nodiscard]] const Calls& calls() const { return calls_; }
  template <typename Table>
  [[nodiscard]] const Table& table() const {
    return *static_cast<const Table*>(descriptor_.vt);
  }

  // Optional functions: nothing happens where the plugin has none.
  void quiesce() const;
  void resume() const;
  void save(MemoryState& state) const;
  void load(MemoryState& state) const;

 private:
  const ciuic_descriptor& descriptor_;
  Calls calls_;
  ciuic_instance* self_ = nullptr;
};

}  // namespace ciuic::testing::contract
