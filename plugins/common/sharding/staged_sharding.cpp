// SPDX-License-Identifier: MIT
#include "sharding/staged_sharding.h"

#include <utility>

namespace ciuic::plugins::stages {
namespace {

constexpr int64_t kBucketBytes = int64_t{4} << 20;
constexpr uint32_t kEqualAndNumeric = CIUIC_OPTION_ALL_RANKS_EQUAL | CIUIC_OPTION_AFFECTS_NUMERICS;

/// Passes that write parameter gradients. BACKWARD_INPUT leaves them to a later BACKWARD_WEIGHT.
bool writes_gradients(uint32_t pass) {
  return pass == CIUIC_PASS_BACKWARD || pass == CIUIC_PASS_BACKWARD_WEIGHT;
}

}  // namespace

// ---- options ----

ciuic_option_spec bucket_size_option(const char* doc) {
  return option_size("bucket_size", kBucketBytes, 1, int64_t{1} << 40, doc, kEqualAndNumeric);
}

ciuic_option_spec name_bad_rank_option() {
  return option_bool("name_bad_rank", true,
                     "Say which rank brought a non-finite gradient; costs one more look at the "
                     "gradients, while they are in the cache",
                     CIUIC_OPTION_ALL_RANKS_EQUAL);
}

ciuic_option_spec shard_ranks_option() {
  return option_i64("shard_ranks", 0, 0, int64_t{1} << 20,
                    "Shard inside groups of so many neighbouring ranks, and replicate across them "
                    "(hybrid sharding); 0: over all ranks",
                    kEqualAndNumeric);
}

ciuic_option_spec offload_option() {
  static constexpr const char* kChoices[] = {"none", "cpu", nullptr};
  return option_enum("offload", "none", kChoices,
                     "Where masters and optimizer state are kept: with the values, or in the "
                     "host's memory",
                     CIUIC_OPTION_ALL_RANKS_EQUAL);
}

void check_shard_ranks(const Context& context) {
  const int64_t ranks = context.options().i64("shard_ranks");
  if (ranks != 0 && context.world() % ranks != 0) {
    throw Error(CIUIC_INVALID, "shard_ranks = " + std::to_string(ranks) + " does not divide the " +
                                   std::to_string(context.world()) +
                                   " ranks; 0 shards over all of them");
  }
}

Settings settings_of(const Context& context, const char* name, int stage) {
  const Options& options = context.options();
  const std::string who = std::string("sharding ") + name;
  if (options.string("offload") == "cpu") {
    if (context.device().type != CIUIC_DEVICE_CPU) {
      throw Error(CIUIC_UNIMPLEMENTED,
                  who + ": offload = \"cpu\" is not built for this device yet; take \"none\"");
    }
    context.host().info(who +
                        ": offload = \"cpu\" changes nothing here: the run is on the CPU, so "
                        "optimizer state is in the host's memory already");
  }
  return {who, stage, options.i64("bucket_size"), options.i64("shard_ranks"),
          options.boolean("name_bad_rank")};
}

// ---- setup ----

StagedSharding::StagedSharding(const Context& context, Settings settings)
    : Sharding(context), device_(context.device()), settings_(std::move(settings)) {}

const std::vector<ciuic_extent>& StagedSharding::plan(const ciuic_shard_plan& request) {
  extents_ = extents_of(settings_, request, OptimizerService(host()));
  return extents_;
}

StagedSharding::Parts::Parts(const Host& host, ciuic_device device, const Settings& settings,
                             const ciuic_shard_plan& plan)
    : layout(settings, plan),
      groups(make_groups(host, settings, layout, plan.groups)),
      transport(host, device, settings.who),
      values(host, device, settings, layout, groups, transport),
      gradients(host, device, settings, layout, groups, transport),
      state(host, device, settings, layout, values, gradients),
      norm(host, device, settings, layout, gradients, plan.rank, plan.world),
      units(layout.num_units()) {
  for (const ciuic_param& p : layout.params()) {
    shapes.emplace_back(nullptr, p.value, std::vector<int64_t>(p.shape, p.shape + p.ndim), device);
    shapes.back().named(to_view(p.name));
  }
}

void StagedSharding::setup(const ciuic_shard_plan& request) {
  if (parts_ != nullptr) {
    throw Error(CIUIC_PRECONDITION, settings_.who + " is set up already");
  }
  if (settings_.name_bad_rank && request.world == 1) {
    settings_.name_bad_rank = false;  // there is nobody else
  }
  parts_ = std::make_unique<Parts>(host(), device_, settings_, request);
}

StagedSharding::Parts& StagedSharding::parts() const {
  if (parts_ == nullptr) {
    throw Error(CIUIC_PRECONDITION, settings_.who + " is used before setup");
  }
  return *parts_;
}

StagedSharding::Unit& StagedSharding::unit_of(const ciuic_use& use) const {
  std::vector<Unit>& units = parts().units;
  if (use.unit >= units.size()) {
    throw Error(CIUIC_INVALID, settings_.who + ": got unit " + std::to_string(use.unit) +
                                   ", there are " + std::to_string(units.size()));
  }
  return units[use.unit];
}

// ---- the schedule ----

/// A use that begin_step did not announce makes the rest unknown; every rank sees the same.
void StagedSharding::note_position(const ciuic_use& use) {
  const bool is_known = use.index < uses_.size() && uses_[use.index].unit == use.unit &&
                        uses_[use.index].pass == use.pass &&
                        uses_[use.index].micro_batch == use.micro_batch;
  if (!is_known) {
    uses_.clear();
  }
  position_ = size_t{use.index} + 1;
}

Ahead StagedSharding::ahead_of(uint32_t unit) const {
  Ahead ahead;
  for (size_t i = position_; i < uses_.size(); ++i) {
    ahead.next = i == position_ ? int64_t{uses_[i].unit} : ahead.next;
    if (uses_[i].unit != unit) {
      ahead.other = uses_[i].unit;
      break;
    }
  }
  return ahead;
}

// ---- a step ----

void StagedSharding::begin_step(const ciuic_step& step) {
  Slots slots;
  slots.is_tree = (step.flags & CIUIC_STEP_ANY_WORLD) != 0 &&
                  (step.flags & CIUIC_STEP_EVALUATE) == 0;  // that has no gradients to add
  slots.micro_batches = std::max(step.micro_batches, 1U);
  slots.first = step.first_slot;
  slots.total = step.num_slots;
  parts().gradients.begin_step(slots);
  uses_.clear();
  for (const ciuic_use& use : ArrayView<ciuic_use>(step.uses)) {
    uses_.push_back(use);
  }
  position_ = 0;
  is_stepped_ = false;
}

const std::vector<ciuic_binding>& StagedSharding::bind(const ciuic_use& use,
                                                       const ciuic_stream* stream, Work& work) {
  Unit& unit = unit_of(use);
  if (unit.depth == unit.frames.size()) {
    unit.frames.emplace_back();
  }
  Frame& frame = unit.frames[unit.depth];
  work = parts().values.bind(use.unit, stream);
  ++unit.depth;
  note_position(use);
  parts().values.gather_ahead(use.unit, ahead_of(use.unit), stream);
  fill_frame(frame, use, stream);
  return frame.bindings;
}

void StagedSharding::fill_frame(Frame& frame, const ciuic_use& use,
                                const ciuic_stream* stream) const {
  Parts& p = parts();
  const std::vector<uint64_t>& params = p.layout.params_of_unit(use.unit);
  frame.bindings.resize(params.size());
  frame.values.resize(params.size());
  frame.grads.resize(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    const uint64_t id = params[i];
    const bool is_empty = p.layout.params()[id].num_elements == 0;
    frame.values[i] = p.shapes[id].c();
    frame.values[i].t.data = is_empty ? nullptr : p.values.data(p.layout.root(id));
    frame.bindings[i] = {sizeof(ciuic_binding), 0, id, &frame.values[i], nullptr};
    if (!writes_gradients(use.pass)) {
      continue;
    }
    const Gradients::Target target = p.gradients.bind(id, use, stream);
    if (target.is_wanted) {
      frame.grads[i] = p.shapes[id].c();
      frame.grads[i].t.dtype = p.layout.params()[id].grad;
      frame.grads[i].t.data = target.data;
      frame.bindings[i].grad = &frame.grads[i];
      frame.bindings[i].flags = target.is_garbage ? uint32_t{CIUIC_BINDING_OVERWRITE} : 0U;
    }
  }
}

void StagedSharding::drop(const ciuic_use& use, const ciuic_stream*) {
  Unit& unit = unit_of(use);
  if (unit.depth == 0) {
    throw Error(CIUIC_PRECONDITION, settings_.who + ": unit " + std::to_string(use.unit) +
                                        " is dropped more often than bound");
  }
  --unit.depth;
  // What the next two units of the schedule need stays: at the turn from forward to backward, both.
  const Ahead ahead = position_ < uses_.size() ? ahead_of(uses_[position_].unit) : Ahead{};
  parts().values.drop(use.unit, ahead);
}

void StagedSharding::grad_ready(const ciuic_use& use, const ciuic_stream* stream) {
  (void)unit_of(use);
  if (writes_gradients(use.pass)) {
    parts().gradients.ready(use, stream);
  }
}

void StagedSharding::end_backward(const ciuic_stream* stream) { parts().gradients.flush(stream); }

void StagedSharding::grad_stats(const ciuic_grad_request& request, const ciuic_stream* stream,
                                ciuic_grad_stats& out) {
  parts().gradients.finish(stream);
  parts().norm.compute(request, stream, out);
}

Work StagedSharding::step(const ciuic_step_update& update, const ciuic_stream* stream) {
  Parts& p = parts();
  p.gradients.finish(stream);
  if (std::exchange(is_stepped_, true)) {
    throw Error(CIUIC_PRECONDITION,
                settings_.who + ": a second step with the same gradients; begin_step comes first");
  }
  if ((update.flags & CIUIC_UPDATE_SKIP) == 0) {
    p.values.settle();
    p.state.update(update, stream);
    p.values.publish(stream);
  }
  return {};
}

void StagedSharding::rollback(int64_t timeout_ns) {
  Parts& p = parts();
  for (Unit& unit : p.units) {
    unit.depth = 0;
  }
  uses_.clear();
  p.gradients.rollback(timeout_ns);
  p.values.rollback(timeout_ns);
}

void StagedSharding::quiesce(int64_t timeout_ns) {
  if (parts_ != nullptr) {
    rollback(timeout_ns);
    parts_->values.settle(timeout_ns);
  }
}

// ---- state ----

void StagedSharding::save(const StateWriter& writer) {
  parts().values.settle();
  parts().state.save(writer);
}

void StagedSharding::load(const StateReader& reader) {
  Parts& p = parts();
  p.values.settle();
  p.state.load(reader);
  p.values.forget_gathered();
}

void StagedSharding::export_roles(uint32_t role_bits, const StateWriter& writer) {
  Parts& p = parts();
  constexpr uint32_t kValue = 1U << CIUIC_ROLE_VALUE;
  constexpr uint32_t kGrad = 1U << CIUIC_ROLE_GRAD;
  if ((role_bits & ~(kValue | kGrad)) != 0) {
    throw Error(CIUIC_UNIMPLEMENTED, settings_.who + " exports values and gradients only");
  }
  if ((role_bits & kValue) != 0) {
    p.values.settle();
    p.state.save_values(writer);
  }
  if ((role_bits & kGrad) != 0) {
    p.gradients.finish(nullptr);
    p.state.save_gradients(writer);
  }
}

}  // namespace ciuic::plugins::stages
