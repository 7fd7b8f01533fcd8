// SPDX-License-Identifier: MIT
//
// Correct, each in its own way: the kit must pass them all.
#include <algorithm>
#include <thread>

#include "mesh_communicator.h"

namespace ciuic::mutants {
namespace {

struct Plain final : Behaviour {
  static constexpr const char* name = "plain_mesh";
  static constexpr const char* summary = "direct exchange over sockets, a thread for progress";
};

struct WorkInWait final : Behaviour {
  static constexpr const char* name = "work_in_wait";
  static constexpr const char* summary = "no thread: progress is made in wait, test and on_done";
  [[nodiscard]] bool has_thread() const override { return false; }
};

/// Sums from the last rank to the first, and the output from its end to its beginning.
struct BackToFront final : Behaviour {
  static constexpr const char* name = "back_to_front";
  static constexpr const char* summary = "own thread; other order of ranks and of elements";
  [[nodiscard]] uint64_t capabilities(uint32_t op, uint32_t reduce,
                                      ciuic_dtype dtype) const override {
    return Behaviour::capabilities(op, reduce, dtype) & ~uint64_t{CIUIC_COMM_TREE};
  }
  [[nodiscard]] std::vector<int> order(const std::vector<int>& arrived) const override {
    std::vector<int> ranks = Behaviour::order(arrived);
    std::reverse(ranks.begin(), ranks.end());
    return ranks;
  }
  void reduce(const Request& r, const std::vector<const char*>& inputs, int64_t elements,
              char* out) const override {
    for (int64_t i = elements - 1; i >= 0; --i) {
      store(r.dtype, out + i * r.width, reduce_element(r, inputs, i * r.width));
    }
  }
};

struct Slow final : Behaviour {
  static constexpr const char* name = "slow";
  static constexpr const char* summary = "sleeps a millisecond for each operation";
  void before_submit() const override { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }
};

/// Sums in f32 and barriers, each done when submit returns; no promise about order.
struct Minimal final : Behaviour {
  static constexpr const char* name = "minimal";
  static constexpr const char* summary = "sums of f32 and nothing else, without asynchrony";
  [[nodiscard]] uint64_t capabilities(uint32_t op, uint32_t reduce,
                                      ciuic_dtype dtype) const override {
    return op == CIUIC_OP_ALL_REDUCE && reduce == CIUIC_REDUCE_SUM && same(dtype, kF32)
               ? uint64_t{CIUIC_COMM_SUPPORTED}
               : 0;
  }
  [[nodiscard]] bool is_blocking() const override { return true; }
};

/// Gives out memory of the host's, and takes note of the caller's.
class OwnMemory final : public MeshCommunicator {
 public:
  static constexpr const char* name = "own_memory";
  static constexpr const char* summary = "has the optional functions for memory";
  explicit OwnMemory(const Context& context)
      : MeshCommunicator(context, std::make_shared<Behaviour>()) {}

  static const ciuic_communicator_vt& table() {
    static const ciuic_communicator_vt vt = make_table();
    return vt;
  }

 private:
  static ciuic_communicator_vt make_table() {
    ciuic_communicator_vt vt = Communicator::table();
    vt.memory_alloc = [](ciuic_instance* self, ciuic_device device, size_t bytes, uint32_t,
                         void** out) {
      const Host& host = from_handle<>(self).host();
      return guard(host, [&] { *out = host.alloc(device, bytes); });
    };
    vt.memory_free = [](ciuic_instance* self, void* memory, size_t bytes) {
      from_handle<>(self).host().dealloc({CIUIC_DEVICE_CPU, 0}, memory, bytes);
    };
    vt.memory_register = [](ciuic_instance*, ciuic_device, void*, size_t, uint32_t) {
      return static_cast<ciuic_status*>(nullptr);
    };
    vt.memory_unregister = [](ciuic_instance*, void*, size_t) {};
    return vt;
  }
};

}  // namespace
}  // namespace ciuic::mutants

CIUIC_PLUGINS(ciuic::mutants::Plugin<ciuic::mutants::Plain>,
              ciuic::mutants::Plugin<ciuic::mutants::WorkInWait>,
              ciuic::mutants::Plugin<ciuic::mutants::BackToFront>,
              ciuic::mutants::Plugin<ciuic::mutants::Slow>,
              ciuic::mutants::Plugin<ciuic::mutants::Minimal>, ciuic::mutants::OwnMemory)
