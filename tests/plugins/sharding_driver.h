// SPDX-License-Identifier: MIT
//
// Drives a sharding plugin through steps of a made-up model: a list of parameters, and gradients
// that a function gives. What it does to a gradient view is what a layer does: overwrite or add.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/testing/memory_state.hpp>
#include <ciuic/testing/rank_group.hpp>

#include "plugins.h"

namespace ciuic::testing {

struct ParamSpec {
  std::string name;
  std::vector<int64_t> shape;
  uint32_t unit = 0;
  uint32_t flags = CIUIC_PARAM_IN_NORM;
  int32_t tied_to = -1;
  std::string group = "data";
  ciuic_dtype value = kF32, grad = kF32, reduce = kF32, master = kF32;
  // Of a model-parallel piece; empty: the whole.
  std::vector<int64_t> global_shape = {}, offset = {};
  int64_t granule = 1;
  std::string sum_group = {};  // empty: none
};

/// The C form of a list of parameters, as one rank sees it.
class ShardPlan {
 public:
  ShardPlan(const Rank& rank, std::vector<ParamSpec> specs)
      : specs_(std::move(specs)), groups_(rank.groups()) {
    for (ParamSpec& s : specs_) {
      if (s.global_shape.empty()) {
        s.global_shape = s.shape;
        s.offset.assign(s.shape.size(), 0);
      }
      ciuic_param p{};
      p.struct_size = sizeof(p);
      p.flags = s.flags;
      p.id = params_.size();
      p.name = to_str(s.name);
      p.unit = s.unit;
      p.group = rank.group(s.group).id;
      p.tied_to = s.tied_to;
      p.value = s.value;
      p.grad = s.grad;
      p.reduce = s.reduce;
      p.master = s.master;
      p.ndim = static_cast<int32_t>(s.shape.size());
      p.shape = s.shape.data();
      p.global_shape = s.global_shape.data();
      p.offset = s.offset.data();
      p.num_elements = 1;
      for (const int64_t n : s.shape) {
        p.num_elements *= n;
      }
      p.granule = s.granule;
      p.sum_group = s.sum_group.empty() ? 0 : rank.group(s.sum_group).id;
      p.weight_decay = 1;
      p.lr_scale = 1;
      params_.push_back(p);
    }
    plan_.struct_size = sizeof(plan_);
    plan_.params = to_array(params_);
    plan_.groups = to_array(groups_);
    plan_.rank = rank.rank();
    plan_.world = rank.world();
  }
  ShardPlan(const ShardPlan&) = delete;
  ShardPlan& operator=(const ShardPlan&) = delete;

  [[nodiscard]] const ciuic_shard_plan* c() const noexcept { return &plan_; }
  [[nodiscard]] ciuic_shard_plan& edit() noexcept { return plan_; }
  [[nodiscard]] std::vector<ciuic_param>& params() noexcept { return params_; }
  [[nodiscard]] uint32_t units() const {
    uint32_t n = 0;
    for (const ciuic_param& p : params_) {
      n = std::max(n, p.unit + 1);
    }
    return n;
  }

 private:
  std::vector<ParamSpec> specs_;
  std::vector<ciuic_group> groups_;
  std::vector<ciuic_param> params_;
  ciuic_shard_plan plan_{};
};

/// Gradient of element `i` of parameter `param` that a micro-batch adds.
using GradientOf = std::function<double(uint64_t param, int64_t i)>;

class ShardingDriver {
 public:
  ShardingDriver(Rank& rank, const LoadedPlugin& sharding, const LoadedPlugin& optimizer,
                 std::vector<ParamSpec> specs, OptionValues options = {},
                 OptionValues optimizer_options = {})
      : rank_(rank),
        plan_(rank, std::move(specs)),
        optimizer_(optimizer.create(rank.host, std::move(optimizer_options), rank.seat())),
        optimizer_service_(optimizer_.service()) {
    rank.host.offer("ciuic.optimizer", &optimizer_service_);
    sharding_.emplace(sharding.create(rank.host, std::move(options), rank.seat()));
    check(vt().setup(self(), plan_.c()));
  }
  ~ShardingDriver() {
    sharding_.reset();
    rank_.host.offer("ciuic.optimizer", nullptr);
  }
  ShardingDriver(const ShardingDriver&) = delete;
  ShardingDriver& operator=(const ShardingDriver&) = delete;

  [[nodiscard]] const ciuic_sharding_vt& vt() const {
    return sharding_->table<ciuic_sharding_vt>();
  }
  [[nodiscard]] ciuic_instance* self() const { return sharding_->self(); }
  [[nodiscard]] const PluginInstance& instance() const { return *sharding_; }
  [[nodiscard]] ShardPlan& plan() { return plan_; }
  [[nodiscard]] Rank& rank() const { return rank_; }
  void check(ciuic_status* status) const { rank_.host.host().check(status); }

  // ---- the calls of a step ----

  void begin(uint32_t flags = 0) {
    ciuic_step step = next_step(flags);
    step.micro_batches = 1;
    check(vt().begin_step(self(), &step));
  }
  /// A step of several micro-batches whose uses are announced; `uses` outlives it.
  void begin(const std::vector<ciuic_use>& uses, uint32_t micro_batches, uint32_t flags = 0,
             std::optional<uint32_t> first_slot = std::nullopt) {
    ciuic_step step = next_step(flags);
    step.micro_batches = micro_batches;
    step.first_slot = first_slot.value_or(micro_batches * static_cast<uint32_t>(rank_.rank()));
    step.num_slots = micro_batches * static_cast<uint32_t>(rank_.world());
    step.uses = to_array(uses);
    check(vt().begin_step(self(), &step));
  }
  /// Forward over all units and back, for each micro-batch.
  [[nodiscard]] std::vector<ciuic_use> schedule(uint32_t micro_batches) const {
    std::vector<ciuic_use> uses;
    for (uint32_t m = 0; m < micro_batches; ++m) {
      for (uint32_t unit = 0; unit < plan_.units(); ++unit) {
        uses.push_back({sizeof(ciuic_use), 0, 0, unit, CIUIC_PASS_FORWARD, m});
      }
      const uint32_t last = m + 1 == micro_batches ? uint32_t{CIUIC_USE_LAST_GRAD} : 0U;
      for (uint32_t unit = plan_.units(); unit-- > 0;) {
        uses.push_back({sizeof(ciuic_use), last, 0, unit, CIUIC_PASS_BACKWARD, m});
      }
    }
    for (uint32_t i = 0; i < uses.size(); ++i) {
      uses[i].index = i;
    }
    return uses;
  }
  /// One use of a schedule: values are read, and in backward gradients written.
  void walk(const ciuic_use& u, const GradientOf& gradient) {
    for (const ciuic_binding& b : bind(u)) {
      if (b.grad != nullptr && (u.flags & CIUIC_USE_IDLE) == 0) {
        write(b, gradient);
      }
    }
    if (u.pass == CIUIC_PASS_BACKWARD) {
      ready(u);
    }
    drop(u);
  }
  static ciuic_use use(uint32_t unit, uint32_t pass, uint32_t flags = 0) {
    return {sizeof(ciuic_use), flags, 0, unit, pass, 0};
  }
  std::vector<ciuic_binding> bind(const ciuic_use& u) {
    ciuic_array bindings{};
    ciuic_work* work = nullptr;
    check(vt().bind(self(), &u, nullptr, &bindings, &work));
    Work(work).wait(rank_.host.host());
    std::vector<ciuic_binding> out;
    for (const ciuic_binding& b : ArrayView<ciuic_binding>(bindings)) {
      out.push_back(b);
    }
    return out;
  }
  void drop(const ciuic_use& u) { check(vt().drop(self(), &u, nullptr)); }
  void ready(const ciuic_use& u) { check(vt().grad_ready(self(), &u, nullptr)); }

  /// One unit's backward: bind, write, report, drop.
  void backward(uint32_t unit, const GradientOf& gradient, uint32_t flags = CIUIC_USE_LAST_GRAD) {
    const ciuic_use u = use(unit, CIUIC_PASS_BACKWARD, flags);
    for (const ciuic_binding& b : bind(u)) {
      if (b.grad != nullptr && (flags & CIUIC_USE_IDLE) == 0) {
        write(b, gradient);
      }
    }
    ready(u);
    drop(u);
  }
  static void write(const ciuic_binding& b, const GradientOf& gradient) {
    for (int64_t i = 0; i < num_elements(*b.grad); ++i) {
      char* at = element_at(*b.grad, i);
      const double old =
          (b.flags & CIUIC_BINDING_OVERWRITE) != 0 ? 0 : load_element(b.grad->t.dtype, at);
      store_element(b.grad->t.dtype, at, old + gradient(b.param, i));
    }
  }
  /// All units, last first.
  void backward_all(const GradientOf& gradient, uint32_t flags = CIUIC_USE_LAST_GRAD) {
    for (uint32_t unit = plan_.units(); unit-- > 0;) {
      backward(unit, gradient, flags);
    }
  }
  void end_backward() { check(vt().end_backward(self(), nullptr)); }
  ciuic_grad_stats stats(double grad_scale = 1, uint32_t norm = CIUIC_NORM_L2) {
    ciuic_grad_request request{};
    request.struct_size = sizeof(request);
    request.grad_scale = grad_scale;
    request.norm = norm;
    ciuic_grad_stats out{};
    out.struct_size = sizeof(out);
    check(vt().grad_stats(self(), &request, nullptr, &out));
    return out;
  }
  void step(double lr, double grad_scale = 1, uint32_t flags = 0) {
    ciuic_step_update u{};
    u.struct_size = sizeof(u);
    u.flags = flags;
    u.update = (flags & CIUIC_UPDATE_SKIP) != 0 ? updates_ + 1 : ++updates_;
    u.lr = lr;
    u.weight_decay_scale = 1;
    u.grad_scale = grad_scale;
    ciuic_work* work = nullptr;
    check(vt().step(self(), &u, nullptr, &work));
    Work(work).wait(rank_.host.host());
  }
  /// A whole step with one micro-batch.
  ciuic_grad_stats train(const GradientOf& gradient, double lr) {
    begin();
    backward_all(gradient);
    end_backward();
    const ciuic_grad_stats out = stats();
    step(lr);
    return out;
  }

  /// What every unit's layers read, one parameter after the other.
  std::vector<double> all_values() {
    std::vector<ciuic_use> uses;
    for (uint32_t unit = 0; unit < plan_.units(); ++unit) {
      uses.push_back({sizeof(ciuic_use), 0, unit, unit, CIUIC_PASS_FORWARD, 0});
    }
    begin(uses, 1, CIUIC_STEP_EVALUATE);
    std::vector<double> out;
    for (const ciuic_use& u : uses) {
      for (const ciuic_binding& b : bind(u)) {
        for (int64_t i = 0; i < num_elements(*b.value); ++i) {
          out.push_back(load_element(b.value->t.dtype, element_at(*b.value, i)));
        }
      }
      drop(u);
    }
    return out;
  }

  void export_roles(uint32_t roles, MemoryState& state) {
    check(vt().export_roles(self(), roles, state.writer(rank_.host.host())));
  }

 private:
  ciuic_step next_step(uint32_t flags) {
    ciuic_step step{};
    step.struct_size = sizeof(step);
    step.flags = flags;
    step.step = ++step_;
    return step;
  }

  Rank& rank_;
  ShardPlan plan_;
  PluginInstance optimizer_;
  ciuic_kind_service optimizer_service_;
  std::optional<PluginInstance> sharding_;
  uint64_t step_ = 0;
  uint64_t updates_ = 0;
};

/// All elements under a key.
inline std::vector<double> elements_of(const MemoryState& state, const std::string& key) {
  std::vector<double> out;
  const MemoryState::Entry& entry = state.entry(key);
  for (size_t i = 0; i < entry.written.size(); ++i) {
    out.push_back(entry.at(static_cast<int64_t>(i)));
  }
  return out;
}

/// First values for every parameter: small numbers that differ everywhere.
inline void initialise(MemoryState& state, const std::vector<ParamSpec>& specs) {
  for (const ParamSpec& s : specs) {
    int64_t n = 1;
    for (const int64_t d : s.shape) {
      n *= d;
    }
    std::vector<double> values;
    for (int64_t i = 0; i < n; ++i) {
      values.push_back(std::sin(static_cast<double>(i) + static_cast<double>(s.name.size())));
    }
    if (s.tied_to < 0) {
      state.put("value/" + s.name, s.shape, values);
    }
  }
}

}  // namespace ciuic::testing
