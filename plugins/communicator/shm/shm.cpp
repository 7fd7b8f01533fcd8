// SPDX-License-Identifier: MIT
//
// Communicator "shm": ranks of one machine, over memory that they share. Layers, from the contract
// down:
//   shm.cpp                options, groups, splits (connect.*: how ranks come to share memory)
//   driven_work.*, engine.*
//                          whose turn it is, and who drives (engine_failure.cpp: when that fails)
//   collective.*           a collective as stages: sum_tensors.*, move_parts.*
//   messages.*             sends and receives
//   board.*, layout.h      the memory of a group; heap.*: memory_alloc's
// Every sum is in the order of one fixed tree over ranks. Left out: device memory, votes, factors.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/communicator.hpp>

#include "communicator/capabilities.h"
#include "communicator/self_delivery.h"
#include "connect.h"
#include "engine.h"

namespace ciuic::plugins::shm {

class Shm final : public Communicator {
 public:
  static constexpr const char* name = "shm";
  static constexpr const char* version = "0.1.0";
  static constexpr const char* vendor = "ciuic";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "ranks of one machine, over shared memory";
  static constexpr uint32_t flags =
      CIUIC_FLAG_NEVER_UNLOAD | CIUIC_FLAG_OWN_THREADS | CIUIC_FLAG_DETERMINISTIC;
  inline static const auto options = option_table(option_duration(
      "timeout", 30'000'000'000, 1'000'000, 86'400'000'000'000,
      "Deadline of every operation and of connecting", CIUIC_OPTION_ALL_RANKS_EQUAL));

  static void validate(const Context& c) {
    if (c.local_world() != c.world()) {
      throw Error(CIUIC_INVALID, "shm: " + std::to_string(c.local_world()) + " of " +
                                     std::to_string(c.world()) +
                                     " ranks run on this machine; shared memory reaches no other: "
                                     "set communicator.plugin = \"auto\"");
    }
  }

  explicit Shm(const Context& c)
      : Communicator(c),
        timeout_(c.options().i64("timeout")),
        group_(whole_world(host(), c.rank(), c.world())),
        heap_(std::make_shared<Heap>()),
        engine_(engine(timeout_)) {}

  Shm(const Shm& parent, Membership group, std::chrono::nanoseconds timeout)
      : Communicator(parent.host()),
        timeout_(parent.timeout_),
        group_(std::move(group)),
        heap_(parent.heap_),
        engine_(engine(timeout)) {}

  ~Shm() override {
    if (engine_) {
      engine_->close();
    }
  }

  uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                        ciuic_device device) const override {
    return capability_bits(op, reduce, dtype, device);
  }

  Work submit(ArrayView<ciuic_collective> collectives, const ciuic_stream* stream) override {
    if (stream != nullptr && stream->device.type != CIUIC_DEVICE_CPU) {
      throw Error(CIUIC_UNIMPLEMENTED, "shm: works in host memory and has no streams");
    }
    std::vector<Request> requests;
    for (const ciuic_collective& c : collectives) {
      requests.push_back(check_request(name, c, group_.rank, world(), timeout_));
    }
    check();
    requests = deliver_to_self(std::move(requests));
    return engine_ ? engine_->submit(std::move(requests)) : Work();
  }

  std::unique_ptr<Communicator> split(const ciuic_split& request) override {
    check();
    const int64_t number = ++num_splits_;  // equal on all ranks: all of them call
    if (request.count == 0) {
      return nullptr;
    }
    const std::chrono::nanoseconds timeout =
        request.timeout_ns <= 0 ? timeout_ : std::chrono::nanoseconds(request.timeout_ns);
    return std::make_unique<Shm>(*this, child_of(group_, request, number, name), timeout);
  }

  void health() override {
    check();
    if (engine_) {
      engine_->check_health();
    }
  }

  void abort(int32_t code) noexcept override {
    abort_code_ = code;
    if (engine_) {
      engine_->abort(code);
    }
  }

  void quiesce(int64_t timeout_ns) override {
    const auto limit = timeout_ns < 0 ? timeout_ * 2 : std::chrono::nanoseconds(timeout_ns);
    if (engine_ && !engine_->drive_all(Clock::now() + limit)) {
      throw Error(CIUIC_DEADLINE, "shm: operations are still under way");
    }
  }

  /// The base's, with memory_alloc.
  static const ciuic_communicator_vt& table() {
    static const ciuic_communicator_vt vt = [] {
      ciuic_communicator_vt t = Communicator::table();
      t.memory_alloc = &Shm::memory_alloc;
      t.memory_free = [](ciuic_instance* self, void* memory, size_t) {
        from_handle<Shm>(self).heap_->free(memory);
      };
      return t;
    }();
    return vt;
  }

 private:
  static ciuic_status* memory_alloc(ciuic_instance* self, ciuic_device device, size_t bytes,
                                    uint32_t, void** out) {
    auto& shm = from_handle<Shm>(self);
    *out = nullptr;
    return guard_running(shm, [&] {
      if (device.type != CIUIC_DEVICE_CPU) {
        throw Error(CIUIC_UNIMPLEMENTED, "shm: has host memory only, asked for device type " +
                                             std::to_string(device.type));
      }
      *out = shm.heap_->alloc(bytes);
    });
  }

  [[nodiscard]] int world() const { return static_cast<int>(group_.ranks.size()); }

  /// NULL for a group of one.
  [[nodiscard]] std::shared_ptr<Engine> engine(std::chrono::nanoseconds timeout) const {
    return world() == 1 ? nullptr
                        : std::make_shared<Engine>(host(), heap_, connect(group_, timeout));
  }

  void check() const {
    if (engine_) {
      engine_->check();
    } else if (const int32_t code = abort_code_.load(); code != CIUIC_OK) {
      throw Error(code, "shm: the group was aborted by its owner");
    }
  }

  const std::chrono::nanoseconds timeout_;
  const Membership group_;
  const std::shared_ptr<Heap> heap_;
  const std::shared_ptr<Engine> engine_;
  int64_t num_splits_ = 0;
  std::atomic<int32_t> abort_code_{CIUIC_OK};
};

}  // namespace ciuic::plugins::shm

CIUIC_PLUGINS(ciuic::plugins::shm::Shm)
