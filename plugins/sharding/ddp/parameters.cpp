// SPDX-License-Identifier: MIT
#include "parameters.h"

#include <algorithm>
#include <utility>

namespace ciuic::plugins::ddp {
namespace {

std::string key_of(std::string_view role, const ciuic_param& p) {
  return std::string(role) + "/" + std::string(to_view(p.name));
}

std::vector<int64_t> list(const int64_t* values, int32_t count) { return {values, values + count}; }

/// Elements [begin, ...) of the parameter's box in the logical parameter.
Place place_of(const ciuic_param& p, int64_t begin) {
  return Place(list(p.global_shape, p.ndim), list(p.offset, p.ndim), list(p.shape, p.ndim), begin);
}

/// Elements [r.begin, r.end) of a one-dimensional tensor, as a writer may keep them.
Tensor part_of(const Tensor& flat, Range r) {
  const ciuic_dl& t = flat.c().t;
  char* data = static_cast<char*>(t.data) + r.begin * dtype_bytes(t.dtype);
  return Tensor(data, t.dtype, {r.end - r.begin}, t.device, CIUIC_TENSOR_STABLE);
}

bool is_placed_like_parameter(const ciuic_state_spec& s) {
  return s.granule == 1 && s.per_granule == 1;
}

int64_t granules_of(const ciuic_param& p, const ciuic_state_spec& s) {
  return (p.num_elements + s.granule - 1) / s.granule;
}

bool is_trainable(const ciuic_param& p) {
  return p.tied_to < 0 && (p.flags & CIUIC_PARAM_FROZEN) == 0;
}

/// Hands out aligned pieces of one buffer: a dry run measures, a second places.
class Cutter {
 public:
  Cutter(ciuic_device device, char* memory) : device_(device), memory_(memory) {}
  Tensor cut(ciuic_dtype dtype, int64_t elements) {
    char* at = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += aligned(elements * dtype_bytes(dtype));
    return Tensor(at, dtype, {elements}, device_);
  }
  [[nodiscard]] int64_t used() const { return used_; }

 private:
  ciuic_device device_;
  char* memory_;
  int64_t used_ = 0;
};

}  // namespace

OptimizerService::OptimizerService(const Host& host) {
  if (const auto* service = host.find_service<ciuic_kind_service>("ciuic.optimizer")) {
    vt = static_cast<const ciuic_optimizer_vt*>(service->vt);
    self = service->self;
  }
}

ArrayView<ciuic_state_spec> OptimizerService::state_spec(const Host& host,
                                                         const ciuic_param& p) const {
  ciuic_array specs{nullptr, 0, 0};
  if (vt != nullptr && is_trainable(p)) {
    host.check(vt->state_spec(self, &p, &specs));
  }
  return specs;
}

bool has_master(const ciuic_param& p) { return is_trainable(p) && !same(p.master, p.value); }

const ciuic_group& find_group(ArrayView<ciuic_group> groups, const ciuic_param& p) {
  for (const ciuic_group& g : groups) {
    if (g.id == p.group) {
      return g;
    }
  }
  throw Error(CIUIC_INVALID, "parameter " + std::string(to_view(p.name)) + " belongs to group " +
                                 std::to_string(p.group) + ", which the plan does not list");
}

Parameters::Parameters(const Host& host, ciuic_device device, const ciuic_shard_plan& plan)
    : host_(host),
      params_(plan.params),
      groups_(plan.groups),
      ops_(host),
      optimizer_(host),
      stored_(params_.size()),
      totals_(groups_.size()) {
  for (uint64_t id = 0; id < params_.size(); ++id) {
    const ciuic_param& p = params_[id];
    if (p.tied_to < 0) {
      int64_t& total = totals_[static_cast<size_t>(group_index(p))];
      stored_[id].before = std::exchange(total, total + p.num_elements);
    }
  }
  describe_moments();
  allocate(device);
}

int64_t Parameters::group_index(const ciuic_param& p) const {
  int64_t index = 0;
  const ciuic_group& group = find_group(groups_, p);
  while (&groups_[static_cast<size_t>(index)] != &group) {
    ++index;
  }
  return index;
}

std::vector<uint64_t> Parameters::roots_by_unit() const {
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < params_.size(); ++id) {
    if (params_[id].tied_to < 0) {
      ids.push_back(id);
    }
  }
  std::stable_sort(ids.begin(), ids.end(),
                   [&](uint64_t a, uint64_t b) { return params_[a].unit < params_[b].unit; });
  return ids;
}

void Parameters::describe_moments() {
  for (uint64_t id = 0; id < params_.size(); ++id) {
    for (const ciuic_state_spec& spec : optimizer_.state_spec(host_, params_[id])) {
      stored_[id].moments.push_back({"moment/" + std::string(to_view(spec.name)), spec, Tensor()});
    }
  }
}

/// One buffer each for values, masters and moments, parameters laid out unit by unit.
void Parameters::allocate(ciuic_device device) {
  const std::vector<uint64_t> ids = roots_by_unit();
  const auto values = [&](Cutter& c) {
    for (const uint64_t id : ids) {
      stored_[id].value_flat = c.cut(params_[id].value, params_[id].num_elements);
    }
  };
  const auto masters = [&](Cutter& c) {
    for (const uint64_t id : ids) {
      if (has_master(params_[id])) {
        stored_[id].master_flat = c.cut(params_[id].master, params_[id].num_elements);
      }
    }
  };
  const auto moments = [&](Cutter& c) {
    for (const uint64_t id : ids) {
      for (Moment& m : stored_[id].moments) {
        m.flat = c.cut(m.spec.dtype, granules_of(params_[id], m.spec) * m.spec.per_granule);
      }
    }
  };
  const auto fit = [&](const auto& cut_all) {
    Cutter measure(device, nullptr);
    cut_all(measure);
    memory_.emplace_back(host_, device, static_cast<size_t>(measure.used()));
    Cutter place(device, memory_.back().bytes());
    cut_all(place);
    ops_.fill(Tensor(memory_.back().data(), kF32, {measure.used() / 4}, device), 0);
  };
  fit(values);
  fit(masters);
  fit(moments);

  for (uint64_t id = 0; id < params_.size(); ++id) {
    Stored& s = stored_[id];
    const ciuic_param& p = params_[id];
    const ciuic_dl& root = stored_[root_of(params_, id)].value_flat.c().t;
    s.value = Tensor(root.data, p.value, list(p.shape, p.ndim), device).named(to_view(p.name));
    for (Moment& m : s.moments) {
      s.moment_ptrs.push_back(m.flat.ptr());
    }
  }
}

void Parameters::update(const ciuic_step_update& step,
                        const std::vector<const ciuic_tensor*>& gradients,
                        const ciuic_stream* stream) const {
  if (optimizer_.vt == nullptr) {
    throw Error(CIUIC_PRECONDITION,
                "sharding ddp: a step needs an optimizer, and this run has none");
  }
  std::vector<ciuic_update> updates;
  for (uint64_t id = 0; id < params_.size(); ++id) {
    if (gradients[id] == nullptr) {
      continue;
    }
    const ciuic_param& p = params_[id];
    const Stored& s = stored_[id];
    ciuic_update u{};
    u.struct_size = sizeof(u);
    u.param = &p;
    u.num_elements = p.num_elements;
    u.update = step.update;
    u.seed = step.seed;
    u.lr = step.lr * p.lr_scale;
    u.weight_decay = p.weight_decay * step.weight_decay_scale;
    u.grad_scale = step.grad_scale;
    u.grad = gradients[id];
    u.master = has_master(p) ? s.master_flat.ptr() : nullptr;
    u.value = s.value_flat.ptr();
    u.state = s.moment_ptrs.data();
    u.num_state = static_cast<uint32_t>(s.moment_ptrs.size());
    updates.push_back(u);
  }
  host_.check(optimizer_.vt->update(optimizer_.self, to_array(updates), stream));
}

// ---- state ----

/// This rank's elements of a parameter: all parameters of the group together are cut evenly over
/// its ranks.
Range Parameters::share(uint64_t param) const {
  const ciuic_param& p = params_[param];
  const ciuic_group& g = find_group(groups_, p);
  return share_of(stored_[param].before, p.num_elements,
                  totals_[static_cast<size_t>(group_index(p))], g.rank, g.size);
}

/// Of model-parallel copies, the one that counts in the norm is the one that is written.
bool Parameters::is_written_here(const ciuic_param& p) const {
  return p.tied_to < 0 &&
         ((p.flags & CIUIC_PARAM_REPLICATED) == 0 || (p.flags & CIUIC_PARAM_IN_NORM) != 0);
}

void Parameters::write(const StateWriter& writer, std::string_view role, uint64_t param,
                       const Tensor& flat) const {
  const ciuic_param& p = params_[param];
  const Range r = share(param);
  // Of an empty parameter rank 0 writes that it is there.
  const bool is_announced = p.num_elements == 0 && find_group(groups_, p).rank == 0;
  if (is_written_here(p) && (r.begin < r.end || is_announced)) {
    writer.tensor(key_of(role, p), place_of(p, r.begin), part_of(flat, r).c());
  }
}

void Parameters::write_moment(const StateWriter& writer, uint64_t param,
                              const Moment& moment) const {
  if (is_placed_like_parameter(moment.spec)) {
    write(writer, moment.key, param, moment.flat);
    return;
  }
  // A granule's state goes with its first element.
  const ciuic_param& p = params_[param];
  const auto granule_at = [&](int64_t element) {
    return (element + moment.spec.granule - 1) / moment.spec.granule * moment.spec.per_granule;
  };
  const Range elements = share(param);
  const Range r{granule_at(elements.begin), granule_at(elements.end)};
  if (is_written_here(p) && r.begin < r.end) {
    writer.tensor(key_of(moment.key, p), Place({num_elements(moment.flat.c())}, r.begin),
                  part_of(moment.flat, r).c());
  }
}

void Parameters::save(const StateWriter& writer) const {
  for (uint64_t id = 0; id < params_.size(); ++id) {
    const Stored& s = stored_[id];
    if (has_master(params_[id])) {
      write(writer, "master", id, s.master_flat);
    } else if (params_[id].tied_to < 0) {
      write(writer, "value", id, s.value_flat);
    }
    for (const Moment& m : s.moments) {
      write_moment(writer, id, m);
    }
  }
}

void Parameters::save_values(const StateWriter& writer) const {
  for (uint64_t id = 0; id < params_.size(); ++id) {
    if (params_[id].tied_to < 0) {
      write(writer, "value", id, stored_[id].value_flat);
    }
  }
}

bool Parameters::load_moment(const StateReader& reader, const ciuic_param& p,
                             const Moment& moment) const {
  const Place place = is_placed_like_parameter(moment.spec)
                          ? place_of(p, 0)
                          : Place({num_elements(moment.flat.c())});
  return reader.tensor(key_of(moment.key, p), place, moment.flat.c());
}

void Parameters::load(const StateReader& reader) {
  for (uint64_t id = 0; id < params_.size(); ++id) {
    const ciuic_param& p = params_[id];
    const Stored& s = stored_[id];
    if (p.tied_to >= 0 || p.num_elements == 0) {
      continue;
    }
    const Tensor& target = has_master(p) ? s.master_flat : s.value_flat;
    if (!reader.tensor(key_of("master", p), place_of(p, 0), target.c()) &&
        !reader.tensor(key_of("value", p), place_of(p, 0), target.c())) {
      throw Error(CIUIC_NOT_FOUND,
                  "the state has no values for parameter " + std::string(to_view(p.name)));
    }
    if (has_master(p)) {
      ops_.copy(s.master_flat, s.value_flat);
    }
    for (const Moment& m : s.moments) {
      if (!load_moment(reader, p, m)) {
        ops_.fill(m.flat, m.spec.initial);
      }
    }
  }
}

}  // namespace ciuic::plugins::ddp
