// SPDX-License-Identifier: MIT
//
// A plain sharding, correct and slow: each rank holds a part of every parameter. Values are gathered
// at bind and freed at drop; gradients are whole until the last one of all units that add to them, and
// are then reduced to shards; masters and moments are shards (ZeRO stage 3, arXiv:1910.02054). Two strategies come from it, and
// each mutant differs from them in one place, marked by its fault.
//
// The transport must take uneven counts, as the reference communicator does.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ciuic/sharding.hpp>

namespace ciuic::mutants {

enum class Fault {
  kNone,
  kExtentsOverlap,
  kExtentsGap,
  kPlanReadsClock,
  kRanksPlanDifferently,
  kNormCountsTiedTwice,
  kNormIsLocal,
  kNormOfAll,
  kSkipSteps,
  kOverwritesSecondMicroBatch,
  kForgetsLastParameter,
  kReshardsWrongly,
  kIgnoresLrScale,
  kAveragesGradients,
  kInnerDropFrees,
  kRollbackKeepsGradients,
  kSwallowsErrors,
  kCountsIdle,
  kReusesBucket
};

struct Traits {
  Fault fault = Fault::kNone;
  bool is_replicated = false;  // every rank holds everything
  bool is_order_odd = false;   // reduces in an order of its own
};

/// [begin, end) of a parameter.
struct Piece {
  int64_t begin, end;
  [[nodiscard]] int64_t size() const { return end - begin; }
};

class Sharded : public Sharding {
 public:
  Sharded(const Context& context, Traits traits);

  [[nodiscard]] const std::vector<ciuic_extent>& plan(const ciuic_shard_plan& request) override;
  void setup(const ciuic_shard_plan& request) override;
  void begin_step(const ciuic_step& step) override;
  [[nodiscard]] const std::vector<ciuic_binding>& bind(const ciuic_use& use, const ciuic_stream*,
                                                       Work&) override;
  void drop(const ciuic_use& use, const ciuic_stream*) override;
  void grad_ready(const ciuic_use& use, const ciuic_stream*) override;
  void end_backward(const ciuic_stream*) override;
  void grad_stats(const ciuic_grad_request& request, const ciuic_stream*,
                  ciuic_grad_stats& out) override;
  [[nodiscard]] Work step(const ciuic_step_update& update, const ciuic_stream*) override;
  void rollback(int64_t timeout_ns) override;
  void save(const StateWriter& writer) override;
  void load(const StateReader& reader) override;

 private:
  struct Memory {
    Buffer buffer;
    Tensor flat;
  };
  struct Moment {
    ciuic_state_spec spec;
    Memory memory;
  };
  struct Stored {
    Piece own{0, 0};
    Memory value, master, grad;  // shards
    std::vector<Moment> moments;
    Memory whole_value, whole_grad;  // while bound; until reduced
    Tensor value_view, grad_view;    // of the parameter's shape
    int binds = 0;
    bool is_written = false;
    bool is_reduced = false;
    uint64_t bad = 0;  // non-finite elements that this rank brought
  };
  struct Unit {
    std::vector<uint64_t> params;
    std::vector<std::vector<ciuic_binding>> frames;
    size_t depth = 0;
    bool is_ready = false;  // had its last gradient of this step
  };

  [[nodiscard]] bool is(Fault fault) const { return traits_.fault == fault; }
  [[nodiscard]] Piece piece_of(const ciuic_param& p, int32_t rank, int32_t size) const;
  [[nodiscard]] const ciuic_group& group_of(const ciuic_param& p) const;
  [[nodiscard]] ArrayView<ciuic_state_spec> specs_of(const ciuic_param& p) const;
  [[nodiscard]] uint64_t root_of(uint64_t id) const;
  Unit& unit_of(const ciuic_use& use);
  void check_set_up() const;

  [[nodiscard]] Memory take(ciuic_dtype dtype, int64_t elements) const;
  [[nodiscard]] Tensor part(const Tensor& flat, Piece piece) const;
  void fill(const Tensor& t, double value) const;
  void copy(const Tensor& from, const Tensor& to) const;

  void gather(uint64_t root);
  void reduce(uint64_t root);
  [[nodiscard]] bool is_complete(uint64_t root) const;
  [[nodiscard]] bool is_last(uint64_t root) const;
  void forget_gradients();
  void submit(const ciuic_group& group, ciuic_collective c) const;
  void sum_over_world(double* values, int64_t count, uint32_t reduce) const;
  [[nodiscard]] ciuic_update update_of(uint64_t id, const ciuic_step_update& step,
                                       std::vector<const ciuic_tensor*>& state) const;

  [[nodiscard]] bool is_written_here(const ciuic_param& p) const;
  [[nodiscard]] Piece state_piece(const ciuic_param& p, const ciuic_state_spec& spec) const;
  void check_params(const ciuic_shard_plan& request) const;

  Traits traits_;
  ciuic_device device_;
  std::vector<ciuic_extent> extents_;
  ArrayView<ciuic_param> params_{ciuic_array{nullptr, 0, 0}};
  ArrayView<ciuic_group> groups_{ciuic_array{nullptr, 0, 0}};
  std::vector<Stored> stored_;
  std::vector<Unit> units_;
  int32_t world_ = 1;
  int32_t rank_ = 0;
  bool is_set_up_ = false;
  bool keeps_gradients_ = false;  // of kRollbackKeepsGradients
  bool is_reduced_ = false;
  bool is_stepped_ = false;
};

}  // namespace ciuic::mutants
