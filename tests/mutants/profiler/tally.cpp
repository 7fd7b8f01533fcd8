// SPDX-License-Identifier: MIT
#include "tally.h"

#include <chrono>
#include <cstdlib>

namespace ciuic::mutants::profiler {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr uint64_t kAll = 0x7FE;  // every category that there is

void spin(microseconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    out += c == '"' ? "\"\"" : std::string(1, c);
  }
  return out + "\"";
}

}  // namespace

Tally::Tally(const Context& context, Habits habits) : Profiler(context), habits_(habits) {
  buffer_.reserve(kCapacity);
  if (habits_.writes_csv) {
    const std::string path = context.output() + "/events.csv";
    file_ = std::fopen(path.c_str(), "w");
    if (file_ == nullptr && !habits_.needs_file) {
      throw Error(CIUIC_PERMISSION, "tally: cannot write " + path);
    }
  }
  start();
}

Tally::~Tally() {
  stop();
  if (file_ != nullptr) {
    std::fclose(file_);
  }
}

uint64_t Tally::mask() const noexcept {
  if (habits_.dies_after_quiesce && is_quiesced_) {
    std::abort();
  }
  if (habits_.drops_all) {
    return 0;
  }
  return habits_.mask_changes && ++asked_ % 2 == 0 ? kAll & ~uint64_t{8} : kAll;
}

void Tally::emit(ArrayView<ciuic_event> events) noexcept {
  if (habits_.drops_all) {
    return;
  }
  for (const ciuic_event& e : events) {
    misbehave(e);
    if (e.category < 64 && ((kAll >> e.category) & 1) != 0) {
      keep(e);
    }
  }
}

void Tally::keep(const ciuic_event& e) noexcept {
  // One who has promised to keep all waits for another emit (which is short), never for a flush.
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  if (habits_.emit_waits || habits_.writes_csv) {
    lock.lock();
  } else if (!lock.try_lock()) {
    ++dropped_;
    return;
  }
  if (buffer_.size() == kCapacity) {
    ++dropped_;
    return;
  }
  buffer_.push_back({e.id, e.time_ns, e.category, e.type, e.name});
}

/// The faults.
void Tally::misbehave(const ciuic_event& e) noexcept {
  if (habits_.emit_is_slow) {
    spin(microseconds(20));
  }
  if (habits_.keeps_events) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pointers_.size() < kCapacity) {
      pointers_.push_back(&e);
    }
  }
  if (habits_.writes_into_events) {
    const_cast<ciuic_event&>(e).thread = 0;
  }
  if (habits_.keeps_everything) {
    const std::lock_guard<std::mutex> lock(mutex_);
    everything_.push_back({e.id, e.time_ns, e.category, e.type, e.name});
  }
  if (habits_.is_unlocked) {  // one slot a writer, and it counts on one
    const size_t slot = writers_++;
    std::this_thread::yield();
    totals_.at(slot * totals_.size()) = e.time_ns;
    --writers_;
  }
  if (habits_.needs_parent) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (e.type == CIUIC_EVENT_BEGIN && e.parent != 0) {
      (void)begun_.at(e.parent);  // throws out of a noexcept function
    }
    begun_[e.id] = e.time_ns;
  }
}

void Tally::flush(int64_t timeout_ns) {
  std::vector<Kept> events;
  events.reserve(kCapacity);  // before the lock, which is held for a swap only
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (habits_.emit_waits) {
      std::this_thread::sleep_for(milliseconds(20));
    }
    events.swap(buffer_);
    for (const ciuic_event* e : pointers_) {
      totals_[e->category % totals_.size()] += e->time_ns;
    }
    pointers_.clear();
  }
  if (habits_.ignores_deadline) {
    std::this_thread::sleep_for(milliseconds(4000));
  }
  if (habits_.flushes_slowly) {
    const auto left = std::chrono::nanoseconds(timeout_ns < 0 ? 100'000'000 : timeout_ns);
    if (left < milliseconds(100)) {
      std::this_thread::sleep_for(left);
      throw Error(CIUIC_DEADLINE, "tally: the flush goes on");
    }
    std::this_thread::sleep_for(milliseconds(100));
  }
  add_up(events);
}

void Tally::quiesce(int64_t) {
  is_quiesced_ = true;
  stop();
}

void Tally::resume() {
  is_quiesced_ = false;
  start();
}

void Tally::start() {
  is_over_ = false;
  if (habits_.has_thread && !thread_.joinable()) {
    thread_ = std::thread([this] { drain(); });
  }
}

void Tally::stop() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Tally::add_up(const std::vector<Kept>& events) {
  const std::lock_guard<std::mutex> lock(totals_mutex_);
  for (const Kept& e : events) {
    totals_[e.category % totals_.size()] += e.time_ns;
    if (habits_.writes_csv && !(habits_.loses_some && e.id % 100 == 7)) {
      write_row(e);
    }
  }
  if (file_ != nullptr && std::fflush(file_) != 0) {
    std::clearerr(file_);
    throw Error(CIUIC_EXHAUSTED, "tally: cannot write events.csv");
  }
}

void Tally::write_row(const Kept& e) {
  const std::string name(to_view(e.name));
  const std::string row = std::to_string(e.id) + "," + std::to_string(e.time_ns) + "," +
                          std::to_string(e.category) + "," +
                          (habits_.quotes_names ? quoted(name) : name) + "\n";
  std::fwrite(row.data(), 1, row.size(), file_);
}

void Tally::drain() {
  std::vector<Kept> events;
  events.reserve(kCapacity);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!is_over_) {
    wake_.wait_for(lock, milliseconds(1));
    events.swap(buffer_);
    lock.unlock();
    add_up(events);
    events.clear();
    lock.lock();
  }
}

}  // namespace ciuic::mutants::profiler
