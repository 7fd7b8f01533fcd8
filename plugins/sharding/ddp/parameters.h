// SPDX-License-Identifier: MIT
//
// What every rank holds of the parameters: values, fp32 masters where the value is narrower, and
// the optimizer's state. Also their way into and out of a state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/sharding.h>
#include <ciuic/plugin.hpp>

#include "bucket_plan.h"
#include "services.h"

namespace ciuic::plugins::ddp {

/// The run's optimizer; where there is none (an evaluation), parameters have no state.
struct OptimizerService {
  explicit OptimizerService(const Host& host);
  [[nodiscard]] ArrayView<ciuic_state_spec> state_spec(const Host& host,
                                                       const ciuic_param& p) const;

  const ciuic_optimizer_vt* vt = nullptr;
  ciuic_instance* self = nullptr;
};

bool has_master(const ciuic_param& p);

class Parameters {
 public:
  /// Memory is zero. `plan` stays valid.
  Parameters(const Host& host, ciuic_device device, const ciuic_shard_plan& plan);

  /// Of the parameter's shape; tied ones show their root's memory.
  [[nodiscard]] const ciuic_tensor* value(uint64_t param) const {
    return stored_[param].value.ptr();
  }

  /// One optimizer step over every trainable parameter; gradients[i] is NULL, or parameter i's, in
  /// one dimension.
  void update(const ciuic_step_update& step, const std::vector<const ciuic_tensor*>& gradients,
              const ciuic_stream* stream) const;

  void save(const StateWriter& writer) const;
  void save_values(const StateWriter& writer) const;
  void load(const StateReader& reader);

  /// Writes this rank's part of `flat`, which all ranks of the parameter's group hold.
  void write(const StateWriter& writer, std::string_view role, uint64_t param,
             const Tensor& flat) const;

 private:
  struct Moment {
    std::string key;  // moment/<state>
    ciuic_state_spec spec;
    Tensor flat;
  };
  struct Stored {
    Tensor value;  // of the parameter's shape
    Tensor value_flat, master_flat;
    std::vector<Moment> moments;
    std::vector<const ciuic_tensor*> moment_ptrs;
    int64_t before = 0;  // elements of the group's parameters before this one
  };

  [[nodiscard]] std::vector<uint64_t> roots_by_unit() const;
  void describe_moments();
  void allocate(ciuic_device device);
  [[nodiscard]] int64_t group_index(const ciuic_param& p) const;
  [[nodiscard]] Range share(uint64_t param) const;
  [[nodiscard]] bool is_written_here(const ciuic_param& p) const;
  void write_moment(const StateWriter& writer, uint64_t param, const Moment& moment) const;
  bool load_moment(const StateReader& reader, const ciuic_param& p, const Moment& moment) const;

  Host host_;
  ArrayView<ciuic_param> params_;
  ArrayView<ciuic_group> groups_;
  TensorOps ops_;
  OptimizerService optimizer_;
  std::vector<Buffer> memory_;
  std::vector<Stored> stored_;   // by parameter
  std::vector<int64_t> totals_;  // by place of the group in the plan: elements of its parameters
};

/// The group of that id. Throws INVALID.
const ciuic_group& find_group(ArrayView<ciuic_group> groups, const ciuic_param& p);

}  // namespace ciuic::plugins::ddp
