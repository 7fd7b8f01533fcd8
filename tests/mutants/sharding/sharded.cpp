// SPDX-License-Identifier: MIT
//
// Who holds what, and the walk through a step.
#include "sharded.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <ciuic/abi/services.h>

namespace ciuic::mutants {
namespace {

std::vector<int64_t> list(const int64_t* values, int32_t count) { return {values, values + count}; }

bool is_trained(const ciuic_param& p) {
  return p.tied_to < 0 && (p.flags & CIUIC_PARAM_FROZEN) == 0;
}
bool has_master(const ciuic_param& p) { return is_trained(p) && !same(p.master, p.value); }
bool writes_gradients(uint32_t pass) {
  return pass == CIUIC_PASS_BACKWARD || pass == CIUIC_PASS_BACKWARD_WEIGHT;
}

}  // namespace

Sharded::Sharded(const Context& context, Traits traits)
    : Sharding(context), traits_(traits), device_(context.device()) {}

/// Even parts of whole granules, the first ranks one more.
Piece Sharded::piece_of(const ciuic_param& p, int32_t rank, int32_t size) const {
  if (traits_.is_replicated) {
    return {0, p.num_elements};
  }
  const int64_t granule = std::max<int64_t>(p.granule, 1);
  const int64_t blocks = (p.num_elements + granule - 1) / granule;
  const auto edge = [&](int64_t r) {
    return std::min((blocks / size * r + std::min<int64_t>(r, blocks % size)) * granule,
                    p.num_elements);
  };
  return {edge(rank), edge(rank + 1)};
}

const ciuic_group& Sharded::group_of(const ciuic_param& p) const {
  for (const ciuic_group& g : groups_) {
    if (g.id == p.group) {
      return g;
    }
  }
  throw Error(CIUIC_INVALID, "parameter " + std::string(to_view(p.name)) + " has no group");
}

ArrayView<ciuic_state_spec> Sharded::specs_of(const ciuic_param& p) const {
  ciuic_array specs{nullptr, 0, 0};
  const auto* optimizer = host().find_service<ciuic_kind_service>("ciuic.optimizer");
  if (optimizer != nullptr && is_trained(p)) {
    const auto& vt = *static_cast<const ciuic_optimizer_vt*>(optimizer->vt);
    host().check(vt.state_spec(optimizer->self, &p, &specs));
  }
  return specs;
}

uint64_t Sharded::root_of(uint64_t id) const {
  while (params_[id].tied_to >= 0) {
    id = static_cast<uint64_t>(params_[id].tied_to);
  }
  return id;
}

const std::vector<ciuic_extent>& Sharded::plan(const ciuic_shard_plan& request) {
  extents_.clear();
  const ArrayView<ciuic_group> groups(request.groups);
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  for (const ciuic_param& p : ArrayView<ciuic_param>(request.params)) {
    const ciuic_group* group = nullptr;
    for (const ciuic_group& g : groups) {
      group = g.id == p.group ? &g : group;
    }
    for (int32_t owner = 0; p.tied_to < 0 && owner < group->size; ++owner) {
      if ((request.flags & CIUIC_PLAN_OWN) != 0 && owner != group->rank) {
        continue;
      }
      int32_t shown = owner;
      Piece piece = piece_of(p, owner, group->size);
      if (is(Fault::kExtentsOverlap)) {
        piece.end = std::min(piece.end + 1, p.num_elements);
      } else if (is(Fault::kExtentsGap) && piece.size() > 1) {
        --piece.end;
      } else if (is(Fault::kPlanReadsClock)) {
        shown = static_cast<int32_t>((owner + now / 1000) % group->size);
      } else if (is(Fault::kRanksPlanDifferently)) {
        shown = (owner + request.rank) % group->size;
      }
      const auto add = [&](uint32_t role, ciuic_dtype dtype) {
        extents_.push_back({p.id, piece.begin, piece.end, shown, role, dtype, 0});
      };
      add(CIUIC_ROLE_VALUE, p.value);
      if (is_trained(p)) {
        add(CIUIC_ROLE_GRAD, p.grad);
        if (traits_.is_replicated) {  // sums beside the gradients that layers write
          add(CIUIC_ROLE_REDUCE, p.reduce);
        }
      }
      if (has_master(p)) {
        add(CIUIC_ROLE_MASTER, p.master);
      }
      for (const ciuic_state_spec& spec : specs_of(p)) {
        add(CIUIC_ROLE_MOMENT, spec.dtype);
      }
    }
  }
  return extents_;
}

void Sharded::check_params(const ciuic_shard_plan& request) const {
  if (is_set_up_) {
    throw Error(CIUIC_PRECONDITION, "set up already");
  }
  for (const ciuic_param& p : ArrayView<ciuic_param>(request.params)) {
    if (p.sum_group != 0) {
      throw Error(CIUIC_UNIMPLEMENTED, "no second sums");
    }
  }
}

void Sharded::setup(const ciuic_shard_plan& request) {
  check_params(request);
  params_ = request.params;
  groups_ = request.groups;
  world_ = request.world;
  rank_ = request.rank;
  stored_.clear();
  stored_.resize(params_.size());
  units_.clear();
  for (const ciuic_param& p : params_) {
    units_.resize(std::max(units_.size(), size_t{p.unit} + 1));
    units_[p.unit].params.push_back(p.id);
    Stored& s = stored_[p.id];
    if (p.tied_to >= 0) {
      continue;
    }
    const ciuic_group& group = group_of(p);
    s.own = piece_of(p, group.rank, group.size);
    s.value = take(p.value, s.own.size());
    if (has_master(p)) {
      s.master = take(p.master, s.own.size());
    }
    if (is_trained(p)) {
      s.grad = take(p.grad, s.own.size());
    }
    for (const ciuic_state_spec& spec : specs_of(p)) {
      s.moments.push_back({spec, take(spec.dtype, state_piece(p, spec).size())});
    }
  }
  is_set_up_ = true;
}

void Sharded::check_set_up() const {
  if (!is_set_up_) {
    throw Error(CIUIC_PRECONDITION, "used before setup");
  }
}

Sharded::Unit& Sharded::unit_of(const ciuic_use& use) {
  check_set_up();
  if (use.unit >= units_.size()) {
    throw Error(CIUIC_INVALID, "there is no unit " + std::to_string(use.unit));
  }
  return units_[use.unit];
}

void Sharded::begin_step(const ciuic_step& step) {
  check_set_up();
  if ((step.flags & CIUIC_STEP_ANY_WORLD) != 0) {
    throw Error(CIUIC_UNIMPLEMENTED, "no sums that are equal at any world size");
  }
  if (!std::exchange(keeps_gradients_, false)) {
    forget_gradients();
  }
}

void Sharded::forget_gradients() {
  for (Stored& s : stored_) {
    s.whole_grad = Memory();
    s.is_written = s.is_reduced = false;
    s.bad = 0;
  }
  for (Unit& unit : units_) {
    unit.is_ready = false;
  }
  is_reduced_ = is_stepped_ = false;
}

const std::vector<ciuic_binding>& Sharded::bind(const ciuic_use& use, const ciuic_stream*, Work&) {
  Unit& unit = unit_of(use);
  for (const uint64_t id : unit.params) {
    Stored& root = stored_[root_of(id)];
    if (root.binds == 0) {
      gather(root_of(id));
    }
    ++root.binds;
  }
  if (unit.depth == unit.frames.size()) {
    unit.frames.emplace_back(unit.params.size());
  }
  std::vector<ciuic_binding>& frame = unit.frames[unit.depth++];
  for (size_t i = 0; i < unit.params.size(); ++i) {
    const uint64_t id = unit.params[i];
    const ciuic_param& p = params_[id];
    const ciuic_param& root_param = params_[root_of(id)];
    Stored& root = stored_[root_of(id)];
    Stored& s = stored_[id];
    const std::vector<int64_t> shape = list(p.shape, p.ndim);
    s.value_view = Tensor(root.whole_value.flat.c().t.data, p.value, shape, device_);
    frame[i] = {sizeof(ciuic_binding), 0, id, s.value_view.ptr(), nullptr};
    if (!writes_gradients(use.pass) || (root_param.flags & CIUIC_PARAM_FROZEN) != 0) {
      continue;
    }
    if (!root.is_written) {
      root.whole_grad = take(p.grad, p.num_elements);
    }
    const bool is_idle = (use.flags & CIUIC_USE_IDLE) != 0;
    const bool is_first = !std::exchange(root.is_written, true);
    if (is_first && is_idle) {
      fill(root.whole_grad.flat, is(Fault::kCountsIdle) ? 1 : 0);
    }
    const bool overwrites = (is_first && !is_idle) || is(Fault::kOverwritesSecondMicroBatch);
    frame[i].flags = overwrites ? uint32_t{CIUIC_BINDING_OVERWRITE} : 0U;
    s.grad_view = Tensor(root.whole_grad.flat.c().t.data, p.grad, shape, device_);
    frame[i].grad = s.grad_view.ptr();
  }
  return frame;
}

void Sharded::drop(const ciuic_use& use, const ciuic_stream*) {
  Unit& unit = unit_of(use);
  if (unit.depth == 0) {
    throw Error(CIUIC_PRECONDITION,
                "unit " + std::to_string(use.unit) + " is dropped more often than bound");
  }
  --unit.depth;
  for (const uint64_t id : unit.params) {
    Stored& root = stored_[root_of(id)];
    --root.binds;
    if (root.binds == 0) {
      root.whole_value = Memory();
    } else if (is(Fault::kInnerDropFrees)) {
      fill(root.whole_value.flat, 0);  // as if other memory were there by now
    }
  }
}

/// Every unit that adds to it had its last gradient.
bool Sharded::is_complete(uint64_t root) const {
  for (const ciuic_param& p : params_) {
    if (root_of(p.id) == root && !units_[p.unit].is_ready) {
      return false;
    }
  }
  return true;
}

/// Every rank reports its units in the same order, so reductions have one order too.
void Sharded::grad_ready(const ciuic_use& use, const ciuic_stream*) {
  Unit& unit = unit_of(use);
  if (unit.depth == 0) {
    throw Error(CIUIC_PRECONDITION, "gradients of a unit that is not bound");
  }
  if ((use.flags & CIUIC_USE_LAST_GRAD) == 0 || traits_.is_order_odd) {
    return;
  }
  unit.is_ready = true;
  for (const uint64_t id : unit.params) {
    const uint64_t root = root_of(id);
    if (is_trained(params_[root]) && is_complete(root)) {
      reduce(root);
    }
  }
}

void Sharded::end_backward(const ciuic_stream*) {
  check_set_up();
  std::vector<uint64_t> order;
  for (uint64_t id = 0; id < params_.size(); ++id) {
    if (is_trained(params_[id]) && !stored_[id].is_reduced) {
      order.push_back(id);
    }
  }
  if (traits_.is_order_odd) {  // neither by unit nor by size, the same on all ranks
    std::sort(order.begin(), order.end(), [&](uint64_t a, uint64_t b) {
      return to_view(params_[a].name) > to_view(params_[b].name);
    });
  }
  for (const uint64_t id : order) {
    reduce(id);
  }
  is_reduced_ = true;
}

Work Sharded::step(const ciuic_step_update& update, const ciuic_stream*) {
  check_set_up();
  if (!is_reduced_ || std::exchange(is_stepped_, true)) {
    throw Error(CIUIC_PRECONDITION, "a step needs gradients that no step has used");
  }
  if ((update.flags & CIUIC_UPDATE_SKIP) != 0 && !is(Fault::kSkipSteps)) {
    return {};
  }
  std::vector<ciuic_update> updates;
  std::vector<std::vector<const ciuic_tensor*>> states(params_.size());
  for (uint64_t id = 0; id < params_.size(); ++id) {
    if (is_trained(params_[id]) && stored_[id].own.size() > 0) {
      updates.push_back(update_of(id, update, states[id]));
    }
  }
  const auto& optimizer = host().service<ciuic_kind_service>("ciuic.optimizer");
  const auto& vt = *static_cast<const ciuic_optimizer_vt*>(optimizer.vt);
  host().check(vt.update(optimizer.self, to_array(updates), nullptr));
  return {};
}

ciuic_update Sharded::update_of(uint64_t id, const ciuic_step_update& step,
                                std::vector<const ciuic_tensor*>& state) const {
  const ciuic_param& p = params_[id];
  const Stored& s = stored_[id];
  for (const Moment& m : s.moments) {
    state.push_back(m.memory.flat.ptr());
  }
  ciuic_update u{};
  u.struct_size = sizeof(u);
  u.param = &p;
  u.begin = s.own.begin;
  u.num_elements = s.own.size();
  u.update = step.update;
  u.seed = step.seed;
  u.lr = step.lr * (is(Fault::kIgnoresLrScale) ? 1 : p.lr_scale);
  u.weight_decay = p.weight_decay * step.weight_decay_scale;
  u.grad_scale = step.grad_scale;
  u.grad = s.grad.flat.ptr();
  u.master = has_master(p) ? s.master.flat.ptr() : nullptr;
  u.value = s.value.flat.ptr();
  u.state = state.data();
  u.num_state = static_cast<uint32_t>(state.size());
  return u;
}

void Sharded::rollback(int64_t) {
  check_set_up();
  for (Unit& unit : units_) {
    unit.depth = 0;
  }
  for (Stored& s : stored_) {
    s.binds = 0;
    s.whole_value = Memory();
  }
  keeps_gradients_ = is(Fault::kRollbackKeepsGradients);
  for (Stored& s : stored_) {
    keeps_gradients_ = keeps_gradients_ && !s.is_reduced;
  }
  if (!keeps_gradients_) {
    forget_gradients();
  }
}

}  // namespace ciuic::mutants
