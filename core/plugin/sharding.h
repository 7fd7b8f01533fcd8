// SPDX-License-Identifier: MIT
//
// The host's view of a sharding plugin: the calls of a step, in the order of abi/sharding.h.
#pragma once

#include <vector>

#include <ciuic/abi/sharding.h>
#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

#include "core/plugin/instance.h"
#include "core/plugin/shown_array.h"

namespace ciuic::core {

class ShardingPlugin {
 public:
  template <typename... Args>
  explicit ShardingPlugin(Args&&... args) : instance_(std::forward<Args>(args)...) {}

  [[nodiscard]] const Instance& instance() const noexcept { return instance_; }

  /// Who holds what; a view of the plugin's, until the next call.
  [[nodiscard]] ArrayView<ciuic_extent> plan(const ciuic_shard_plan& request) const {
    ciuic_array extents{};
    check(vt().plan(self(), &request, &extents), "sharding.plan");
    return shown_array<ciuic_extent>(extents, instance_, "sharding.plan");
  }
  void setup(const ciuic_shard_plan& plan) const {
    check(vt().setup(self(), &plan), "sharding.setup");
  }
  void begin_step(const ciuic_step& step) const {
    check(vt().begin_step(self(), &step), "sharding.begin_step");
  }
  /// Waits until the unit's values are usable.
  [[nodiscard]] ArrayView<ciuic_binding> bind(const ciuic_use& use) const {
    ciuic_array bindings{};
    ciuic_work* pending = nullptr;
    check(vt().bind(self(), &use, nullptr, &bindings, &pending), "sharding.bind");
    wait(Work(pending), "sharding.bind");
    return shown_array<ciuic_binding>(bindings, instance_, "sharding.bind");
  }
  void drop(const ciuic_use& use) const {
    check(vt().drop(self(), &use, nullptr), "sharding.drop");
  }
  void grad_ready(const ciuic_use& use) const {
    check(vt().grad_ready(self(), &use, nullptr), "sharding.grad_ready");
  }
  void end_backward() const { check(vt().end_backward(self(), nullptr), "sharding.end_backward"); }
  /// Of all parameters, or where `params` is given of those.
  [[nodiscard]] ciuic_grad_stats grad_stats(double grad_scale, uint32_t norm,
                                            const std::vector<int64_t>* params = nullptr) const {
    ciuic_grad_request request{};
    request.struct_size = sizeof(request);
    request.grad_scale = grad_scale;
    request.norm = norm;
    if (params != nullptr) {
      request.num_params = static_cast<uint32_t>(params->size());
      request.params = params->empty() ? &kNoParameter : params->data();
    }
    ciuic_grad_stats stats{};
    stats.struct_size = sizeof(stats);
    check(vt().grad_stats(self(), &request, nullptr, &stats), "sharding.grad_stats");
    return stats;
  }
  void step(const ciuic_step_update& update) const {
    ciuic_work* pending = nullptr;
    check(vt().step(self(), &update, nullptr, &pending), "sharding.step");
    wait(Work(pending), "sharding.step");
  }
  void export_roles(uint32_t role_bits, const ciuic_writer& writer) const {
    if (!CIUIC_CAN(&vt(), export_roles)) {
      throw Failure(ExitCode::Plugin, "sharding " + instance_.name() + " cannot export tensors");
    }
    check(vt().export_roles(self(), role_bits, &writer), "sharding.export_roles");
  }

 private:
  static constexpr int64_t kNoParameter = -1;  // NULL would mean all

  [[nodiscard]] const ciuic_sharding_vt& vt() const noexcept {
    return instance_.vt<ciuic_sharding_vt>();
  }
  [[nodiscard]] ciuic_instance* self() const noexcept { return instance_.self(); }
  void check(ciuic_status* status, const char* op) const { instance_.check(status, op); }
  void wait(const Work& work, const char* op) const {
    if (work) {
      check(work.get()->ops->wait(work.get(), -1), op);
    }
  }

  Instance instance_;
};

}  // namespace ciuic::core
