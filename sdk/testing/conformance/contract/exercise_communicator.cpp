// SPDX-License-Identifier: MIT
//
// A group of one rank: every operation that it says it can do, alone and in one submit, and a
// split.
#include <cstring>
#include <vector>

#include <ciuic/testing/guarded_struct.hpp>

#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

constexpr int64_t kElements = 8;
constexpr int64_t kTimeoutNs = 20'000'000'000;
constexpr uint32_t kOperations[] = {CIUIC_OP_ALL_REDUCE, CIUIC_OP_REDUCE_SCATTER,
                                    CIUIC_OP_ALL_GATHER, CIUIC_OP_BROADCAST,
                                    CIUIC_OP_ALL_TO_ALL, CIUIC_OP_BARRIER};

bool reduces(uint32_t op) { return op == CIUIC_OP_ALL_REDUCE || op == CIUIC_OP_REDUCE_SCATTER; }

/// A collective with its tensors.
class Collective {
 public:
  Collective(uint32_t op, uint64_t number)
      : in_(kElements),
        out_(kElements),
        in_tensor_(in_.data(), kF32, {kElements}),
        out_tensor_(out_.data(), kF32, {kElements}),
        in_c_(in_tensor_.c()),
        out_c_(out_tensor_.c()) {
    for (int64_t i = 0; i < kElements; ++i) {
      in_[static_cast<size_t>(i)] = static_cast<float>(number) + static_cast<float>(i) / 8;
      out_[static_cast<size_t>(i)] = -in_[static_cast<size_t>(i)];
    }
    c_.struct_size = sizeof(c_);
    c_.op = op;
    c_.reduce = reduces(op) ? CIUIC_REDUCE_SUM : 0;
    c_.sequence = number;
    c_.timeout_ns = kTimeoutNs;
    c_.in = op == CIUIC_OP_BARRIER || op == CIUIC_OP_BROADCAST ? nullptr : in_c_.get();
    c_.out = op == CIUIC_OP_BARRIER ? nullptr : out_c_.get();
    c_.label = to_str("exercise");
  }
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  [[nodiscard]] const ciuic_collective& c() const { return c_; }
  [[nodiscard]] std::string results() const {
    return bytes_of(out_.data(), out_.size() * sizeof(float));
  }

 private:
  std::vector<float> in_, out_;
  Tensor in_tensor_, out_tensor_;
  GuardedStruct<ciuic_tensor> in_c_, out_c_;
  ciuic_collective c_{};
};

class CommunicatorExercise final : public Exercise {
 public:
  using Exercise::Exercise;

  std::string round(const Instance& comm, uint64_t number) override {
    const auto& vt = comm.table<ciuic_communicator_vt>();
    comm.calls().check("health", [&] { return vt.health(comm.self()); });
    std::string results;
    for (const uint32_t op : kOperations) {
      if (can(comm, op)) {
        results += submit(comm, comm.self(), op, number);
      }
    }
    results += split(comm, number);
    return results;
  }

 private:
  static bool can(const Instance& comm, uint32_t op) {
    const auto& vt = comm.table<ciuic_communicator_vt>();
    uint64_t bits = 0;
    comm.calls().check("capabilities", [&] {
      return vt.capabilities(comm.self(), op, reduces(op) ? CIUIC_REDUCE_SUM : 0, kF32,
                             {CIUIC_DEVICE_CPU, 0}, &bits);
    });
    return (bits & CIUIC_COMM_SUPPORTED) != 0;
  }
  /// The structs are gone once submit has returned; the data is not.
  [[nodiscard]] std::string submit(const Instance& comm, ciuic_instance* self, uint32_t op,
                                   uint64_t number) const {
    const auto& vt = comm.table<ciuic_communicator_vt>();
    const Collective collective(op, number);
    const GuardedArray<ciuic_collective> group({collective.c()});
    ciuic_work* work = nullptr;
    comm.calls().check("submit", [&] { return vt.submit(self, group.c(), nullptr, &work); });
    group.forbid();
    comm.calls().finish(work, context_.patience);
    return collective.results();
  }
  [[nodiscard]] std::string split(const Instance& comm, uint64_t number) const {
    const auto& vt = comm.table<ciuic_communicator_vt>();
    const int32_t ranks[] = {0};
    ciuic_split request{};
    request.struct_size = sizeof(request);
    request.ranks = ranks;
    request.count = 1;
    const std::string name = "part" + std::to_string(number);
    request.name = to_str(name);
    request.timeout_ns = kTimeoutNs;
    const GuardedStruct<ciuic_split> guarded(request);
    ciuic_instance* child = nullptr;
    comm.calls().check("split", [&] { return vt.split(comm.self(), guarded.get(), &child); });
    require(child != nullptr, "split gave no group to a rank that is in it");
    std::string results;
    try {
      if (can(comm, CIUIC_OP_ALL_REDUCE)) {
        results = submit(comm, child, CIUIC_OP_ALL_REDUCE, number);
      }
    } catch (const Error&) {
      comm.descriptor().destroy(child);
      throw;
    }
    comm.calls().run("destroy of a split", [&] { comm.descriptor().destroy(child); });
    return results;
  }
};

}  // namespace

std::unique_ptr<Exercise> exercise_communicator(const TestContext& context, Bench& bench) {
  return std::make_unique<CommunicatorExercise>(context, bench);
}

}  // namespace ciuic::testing::contract
