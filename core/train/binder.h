// SPDX-License-Identifier: MIT
//
// Between sharding and the layers: what a bind returns, as the tensors that a unit of the model
// takes. Holds the passes to the walk that sharding was told of.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/gradient.h"
#include "core/model/model.h"
#include "core/plugin/sharding.h"

namespace ciuic::core {

/// A unit that is present: its bindings stand until this object goes, which drops the unit.
class BoundUnit {
 public:
  BoundUnit(const ShardingPlugin& sharding, const ciuic_use& use, Bindings bindings)
      : sharding_(&sharding), use_(use), bindings_(bindings) {}
  BoundUnit(const BoundUnit&) = delete;
  BoundUnit& operator=(const BoundUnit&) = delete;
  /// Drops the unit, unless a failure is under way already.
  ~BoundUnit() noexcept(false);

  [[nodiscard]] Bindings bindings() const { return bindings_; }
  /// This use's gradients are written.
  void grad_ready() const;

 private:
  const ShardingPlugin* sharding_;
  ciuic_use use_;
  Bindings bindings_;
  int exceptions_ = std::uncaught_exceptions();
};

class Binder {
 public:
  /// Both must outlive this object.
  Binder(const ShardingPlugin& sharding, const Model& model);

  /// Begins a step on the sharding plugin; `step.uses` is set to `walk`, which the binds to come follow.
  void begin_step(ciuic_step step, std::vector<ciuic_use> walk);
  [[nodiscard]] BoundUnit bind(int64_t unit, uint32_t pass, uint32_t micro_batch,
                               uint32_t flags = 0);

 private:
  /// One parameter's tensors, kept as long as the plugin shows the same memory: making them anew
  /// costs microseconds each.
  struct Cached {
    void* value = nullptr;
    void* grad = nullptr;
    at::Tensor value_tensor;
    at::Tensor grad_tensor;
  };

  const ShardingPlugin& sharding_;
  std::vector<ciuic_use> walk_;
  size_t next_ = 0;
  std::vector<int64_t> first_;  // first parameter of each unit, and the end
  std::vector<Cached> cache_;   // by parameter
  std::vector<std::vector<Bound>> bound_;
  const PolicyProducts* products_ = nullptr;  // of the hooks, if there are any
};

}  // namespace ciuic::core
