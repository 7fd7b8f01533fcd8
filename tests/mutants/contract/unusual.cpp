// SPDX-License-Identifier: MIT
//
// Correct plugins that are not as most are; the kit must pass them. Several in one library, which
// is unusual too.
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "subject.hpp"

namespace ciuic::mutants {
namespace {

/// create takes its time, as one that opens a device does.
class SlowToCreate final : public Subject {
 public:
  static constexpr const char* name = "slow_to_create";
  explicit SlowToCreate(const Context& c) : Subject(c) {
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
  }
};

constexpr size_t kManyOptions = 300;

/// Keys live as long as the library.
const std::array<std::string, kManyOptions>& many_keys() {
  static const std::array<std::string, kManyOptions> keys = [] {
    std::array<std::string, kManyOptions> out;
    for (size_t i = 0; i < kManyOptions; ++i) {
      out[i] = "option_" + std::to_string(i);
    }
    return out;
  }();
  return keys;
}

std::array<ciuic_option_spec, kManyOptions + 2> many_options() {
  std::array<ciuic_option_spec, kManyOptions + 2> out{};
  for (size_t i = 0; i < kManyOptions; ++i) {
    out[i] = option_bool(many_keys()[i].c_str(), i % 2 == 0, "One of many");
  }
  out[kManyOptions] = Subject::options[0];
  out[kManyOptions + 1] = Subject::options[1];
  return out;
}

class ManyOptions final : public Subject {
 public:
  static constexpr const char* name = "many_options";
  inline static const auto options = many_options();
  using Subject::Subject;
};

/// Events go through a queue to a thread of its own, which rests while it is quiesced.
class OwnThread final : public Subject {
 public:
  static constexpr const char* name = "own_thread";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC | CIUIC_FLAG_OWN_THREADS;
  explicit OwnThread(const Context& c) : Subject(c) { start(); }
  ~OwnThread() override { stop(); }

  void emit(ArrayView<ciuic_event> events) noexcept override {
    waiting_ += events.size();
    changed_.notify_one();
  }
  void quiesce(int64_t) override { stop(); }
  void resume() override { start(); }
  void save(const StateWriter& writer) override {
    drain();
    Subject::save(writer);
  }

 private:
  void start() {
    if (!thread_.joinable()) {
      stop_ = false;
      thread_ = std::thread([this] { run(); });
    }
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) {
      thread_.join();
    }
    drain();
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      changed_.wait_for(lock, std::chrono::milliseconds(20));
      drain();
    }
  }
  void drain() { count_ += waiting_.exchange(0); }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::atomic<uint64_t> waiting_{0};
  std::thread thread_;
};

/// Listens to nothing, keeps nothing, says nothing of determinism.
class Silent final : public Profiler {
 public:
  static constexpr const char* name = "silent";
  static constexpr const char* version = "0.0.1-rc.1+build.5";
  static constexpr const char* license = "Apache-2.0";
  static constexpr const char* summary = "listens to nothing";
  using Profiler::Profiler;
  [[nodiscard]] uint64_t mask() const noexcept override { return 0; }
  void emit(ArrayView<ciuic_event>) noexcept override {}
};

}  // namespace
}  // namespace ciuic::mutants

using namespace ciuic::mutants;
CIUIC_PLUGINS(SlowToCreate, ManyOptions, OwnThread, Silent)
