// SPDX-License-Identifier: MIT
//
// A model as a sharding plugin sees it: a list of parameters, and its C form for one rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/abi/sharding.h>
#include <ciuic/testing/rank_group.hpp>

namespace ciuic::testing {

struct ModelParam {
  std::string name;
  std::vector<int64_t> shape;
  uint32_t unit = 0;
  uint32_t flags = CIUIC_PARAM_IN_NORM;
  int32_t tied_to = -1;
  std::string group = "data";
  std::string sum_group{};  // empty: none
  ciuic_dtype value = kF32, grad = kF32, reduce = kF32, master = kF32;
  int64_t granule = 1;
  double weight_decay = 1, lr_scale = 1;
  std::vector<int64_t> global_shape{}, offset{};  // of a model-parallel piece; empty: the whole

  [[nodiscard]] int64_t num_elements() const {
    int64_t n = 1;
    for (const int64_t d : shape) {
      n *= d;
    }
    return n;
  }
  [[nodiscard]] bool is_frozen() const { return (flags & CIUIC_PARAM_FROZEN) != 0; }
  /// Has values of its own that an optimizer moves.
  [[nodiscard]] bool is_trained() const { return tied_to < 0 && !is_frozen(); }
  [[nodiscard]] bool has_master() const { return is_trained() && !same(master, value); }
};

using Model = std::vector<ModelParam>;

/// The parameter whose storage parameter `id` uses.
inline uint64_t storage_of(const Model& model, uint64_t id) {
  while (model[id].tied_to >= 0) {
    id = static_cast<uint64_t>(model[id].tied_to);
  }
  return id;
}

inline uint32_t num_units(const Model& model) {
  uint32_t n = 0;
  for (const ModelParam& p : model) {
    n = std::max(n, p.unit + 1);
  }
  return n;
}

/// Valid as long as this object and the rank.
class ModelPlan {
 public:
  ModelPlan(const Rank& rank, Model model) : model_(std::move(model)), groups_(rank.groups()) {
    for (ModelParam& p : model_) {
      if (p.global_shape.empty()) {
        p.global_shape = p.shape;
        p.offset.assign(p.shape.size(), 0);
      }
      params_.push_back(describe(rank, p, params_.size()));
    }
    plan_.struct_size = sizeof(plan_);
    plan_.params = to_array(params_);
    plan_.groups = to_array(groups_);
    plan_.rank = rank.rank();
    plan_.world = rank.world();
  }
  ModelPlan(const ModelPlan&) = delete;
  ModelPlan& operator=(const ModelPlan&) = delete;

  [[nodiscard]] const ciuic_shard_plan* c() const noexcept { return &plan_; }
  [[nodiscard]] const Model& model() const noexcept { return model_; }
  [[nodiscard]] const std::vector<ciuic_param>& params() const noexcept { return params_; }
  [[nodiscard]] const ciuic_group& group_of(uint64_t param) const {
    return *std::find_if(groups_.begin(), groups_.end(),
                         [&](const ciuic_group& g) { return g.id == params_[param].group; });
  }
  void set_flags(uint32_t flags) { plan_.flags = flags; }
  /// An estimate: no group can be talked to.
  void silence() {
    for (ciuic_group& g : groups_) {
      g.vt = nullptr;
      g.self = nullptr;
    }
  }

 private:
  static ciuic_param describe(const Rank& rank, const ModelParam& p, uint64_t id) {
    ciuic_param c{};
    c.struct_size = sizeof(c);
    c.flags = p.flags;
    c.id = id;
    c.name = to_str(p.name);
    c.unit = p.unit;
    c.group = rank.group(p.group).id;
    c.sum_group = p.sum_group.empty() ? 0 : rank.group(p.sum_group).id;
    c.tied_to = p.tied_to;
    c.value = p.value;
    c.grad = p.grad;
    c.reduce = p.reduce;
    c.master = p.master;
    c.ndim = static_cast<int32_t>(p.shape.size());
    c.shape = p.shape.data();
    c.global_shape = p.global_shape.data();
    c.offset = p.offset.data();
    c.num_elements = p.num_elements();
    c.granule = p.granule;
    c.weight_decay = p.weight_decay;
    c.lr_scale = p.lr_scale;
    return c;
  }

  Model model_;
  std::vector<ciuic_group> groups_;
  std::vector<ciuic_param> params_;
  ciuic_shard_plan plan_{};
};

/// First values for every parameter: small numbers that differ everywhere, exact in bf16 too.
inline double first_value(uint64_t param, int64_t element) {
  const uint64_t mixed = (param * 977 + static_cast<uint64_t>(element)) * 0x9E3779B97F4A7C15U;
  return (static_cast<double>(mixed >> 57) - 63.5) / 128;
}
inline void put_first_values(MemoryState& state, const Model& model) {
  for (uint64_t id = 0; id < model.size(); ++id) {
    const ModelParam& p = model[id];
    if (p.tied_to < 0 && p.global_shape.empty()) {
      std::vector<double> values;
      for (int64_t i = 0; i < p.num_elements(); ++i) {
        values.push_back(first_value(id, i));
      }
      state.put("value/" + p.name, p.shape, values, same(p.master, kF64) ? kF64 : kF32);
    }
  }
}

}  // namespace ciuic::testing
