// SPDX-License-Identifier: MIT
//
// The sharding strategies of the tree: one walk through a step for all stages of ZeRO (arXiv:1910.02054)
// and for plain data parallelism. A plugin names its stage and its options; layout.h says what a stage
// cuts.
//
//   setup         layout.h, groups.h; memory for values.h, gradients.h, owned_state.h
//   bind          values, gathered where they are cut; gradients, of which the first use in a step
//                 overwrites, so nothing is zeroed
//   grad_ready    the last one of a bucket's units starts the bucket's sum
//   grad_stats    gradient_norm.h: one global norm, equal on all ranks
//   step          one call of the optimizer over this rank's parts, which are then published
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <ciuic/sharding.hpp>

#include "sharding/gradient_norm.h"
#include "sharding/gradients.h"
#include "sharding/groups.h"
#include "sharding/layout.h"
#include "sharding/owned_state.h"
#include "sharding/transport.h"
#include "sharding/values.h"

namespace ciuic::plugins::stages {

// ---- options that stages share ----

ciuic_option_spec bucket_size_option(const char* doc);
ciuic_option_spec name_bad_rank_option();
ciuic_option_spec shard_ranks_option();
ciuic_option_spec offload_option();
/// Before anything is set up: shard_ranks that do not divide the run's ranks. Throws INVALID.
void check_shard_ranks(const Context& context);
/// Of a stage from 1 on; logs what offload means on this device.
Settings settings_of(const Context& context, const char* name, int stage);

class StagedSharding : public Sharding {
 public:
  static constexpr std::array<const char*, 2> features{"norm:params", nullptr};

  [[nodiscard]] const std::vector<ciuic_extent>& plan(const ciuic_shard_plan& request) override;
  void setup(const ciuic_shard_plan& request) override;
  void begin_step(const ciuic_step& step) override;
  [[nodiscard]] const std::vector<ciuic_binding>& bind(const ciuic_use& use,
                                                       const ciuic_stream* stream,
                                                       Work& work) override;
  void drop(const ciuic_use& use, const ciuic_stream* stream) override;
  void grad_ready(const ciuic_use& use, const ciuic_stream* stream) override;
  void end_backward(const ciuic_stream* stream) override;
  void grad_stats(const ciuic_grad_request& request, const ciuic_stream* stream,
                  ciuic_grad_stats& out) override;
  [[nodiscard]] Work step(const ciuic_step_update& update, const ciuic_stream* stream) override;
  void rollback(int64_t timeout_ns) override;
  void save(const StateWriter& writer) override;
  void load(const StateReader& reader) override;
  void export_roles(uint32_t role_bits, const StateWriter& writer) override;
  void quiesce(int64_t timeout_ns) override;

 protected:
  StagedSharding(const Context& context, Settings settings);

 private:
  struct Frame {  // one of nested binds
    std::vector<ciuic_binding> bindings;
    std::vector<ciuic_tensor> values, grads;
  };
  struct Unit {
    std::vector<Frame> frames;
    size_t depth = 0;
  };
  /// All that setup makes, in the order in which it is destroyed backwards.
  struct Parts {
    Parts(const Host& host, ciuic_device device, const Settings& settings,
          const ciuic_shard_plan& plan);

    Layout layout;
    std::vector<BlockGroups> groups;
    Transport transport;
    Values values;
    Gradients gradients;
    OwnedState state;
    GradientNorm norm;
    std::vector<Tensor> shapes;  // by parameter, without data
    std::vector<Unit> units;
  };

  Parts& parts() const;
  Unit& unit_of(const ciuic_use& use) const;
  void fill_frame(Frame& frame, const ciuic_use& use, const ciuic_stream* stream) const;
  void note_position(const ciuic_use& use);
  [[nodiscard]] Ahead ahead_of(uint32_t unit) const;

  ciuic_device device_;
  Settings settings_;
  std::vector<ciuic_extent> extents_;
  std::unique_ptr<Parts> parts_;
  bool is_stepped_ = false;  // the gradients of this step are used up

  // What is bound in this step, in order; empty: unknown.
  std::vector<ciuic_use> uses_;
  size_t position_ = 0;  // of the next bind
};

}  // namespace ciuic::plugins::stages
