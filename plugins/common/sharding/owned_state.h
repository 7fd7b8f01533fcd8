// SPDX-License-Identifier: MIT
//
// What this rank alone answers for: masters, optimizer state and values of its parts. One call of the
// optimizer updates them. Their way into and out of a state goes by place, so a state that one stage
// and world wrote loads in any other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/plugin.hpp>

#include "sharding/gradients.h"
#include "sharding/layout.h"
#include "sharding/values.h"

namespace ciuic::plugins::stages {

class OwnedState {
 public:
  /// Memory is zero. Everything handed in outlives this object.
  OwnedState(const Host& host, ciuic_device device, const Settings& settings, const Layout& layout,
             const Values& values, const Gradients& gradients);

  /// One optimizer step over every trained part.
  void update(const ciuic_step_update& step, const ciuic_stream* stream);

  void save(const StateWriter& writer) const;
  void load(const StateReader& reader);
  void save_values(const StateWriter& writer) const;
  void save_gradients(const StateWriter& writer) const;

 private:
  struct Moment {
    std::string key;  // moment/<state>
    ciuic_state_spec spec;
    Tensor flat;
  };
  struct Part {  // by block and segment of its own part
    Segment segment;
    Tensor grad, master, value;  // master: no elements where the value is the master
    std::vector<Moment> moments;
    std::vector<const ciuic_tensor*> moment_ptrs;
  };

  void allocate(size_t block);
  void describe_moments(Part& part) const;
  [[nodiscard]] const ciuic_param& param(const Part& part) const {
    return layout_.params()[part.segment.param];
  }
  [[nodiscard]] bool has_master(const Part& part) const {
    return sharding::has_master(param(part));
  }
  /// Calls body(part, range) for what this rank writes: elements of the parameter.
  template <typename Body>
  void each_written(const Body& body) const;
  void write(const StateWriter& writer, std::string_view role, const Part& part, Range range,
             const Tensor& flat) const;
  void write_moment(const StateWriter& writer, const Part& part, Range range,
                    const Moment& moment) const;
  void read_values(const StateReader& reader, const ciuic_param& p, int64_t begin,
                   const Tensor& into) const;
  void load_values_of_others(const StateReader& reader, size_t block);
  [[nodiscard]] bool load_moment(const StateReader& reader, const Part& part,
                                 const Moment& moment) const;

  Host host_;
  const Settings& settings_;
  const Layout& layout_;
  const Values& values_;
  const Gradients& gradients_;
  ciuic_device device_;
  TensorOps ops_;
  OptimizerService optimizer_;
  std::vector<Buffer> memory_;
  std::vector<std::vector<Part>> parts_;  // by block
  std::vector<ciuic_update> updates_;
};

}  // namespace ciuic::plugins::stages
