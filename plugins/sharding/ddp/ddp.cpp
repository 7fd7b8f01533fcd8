// SPDX-License-Identifier: MIT
//
// Sharding "ddp": every rank holds everything; gradients are summed over the ranks while backward
// runs (PyTorch Distributed, arXiv:2006.15704). The reference that other strategies are compared
// with.
//
//   setup         parameters.h: values, masters, optimizer state; gradients.h: flat buckets
//   bind          views of both; the first use of a gradient in a step overwrites it, so nothing is
//                 zeroed
//   grad_ready    the last one of a bucket's units starts the bucket's all-reduce
//   grad_stats    one global norm, equal on all ranks
//   step          one call of the optimizer over all parameters
//
// Left out: second sums (ciuic_param.sum_group) and the any-world reduction tree.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/sharding.hpp>

#include "gradients.h"
#include "parameters.h"

namespace ciuic::plugins::ddp {
namespace {

/// Passes that write parameter gradients. BACKWARD_INPUT leaves them to a later BACKWARD_WEIGHT.
bool writes_gradients(uint32_t pass) {
  return pass == CIUIC_PASS_BACKWARD || pass == CIUIC_PASS_BACKWARD_WEIGHT;
}

class Ddp final : public Sharding {
 public:
  static constexpr const char* name = "ddp";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary =
      "every rank holds everything; gradients are summed during backward";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  inline static const auto options = option_table(
      option_size("bucket_size", int64_t{4} << 20, 1, int64_t{1} << 40,
                  "Gradients that are summed in one all-reduce; smaller starts earlier, larger has "
                  "less overhead",
                  CIUIC_OPTION_ALL_RANKS_EQUAL | CIUIC_OPTION_AFFECTS_NUMERICS),
      option_bool("name_bad_rank", true,
                  "Say which rank brought a non-finite gradient; costs one more look at the "
                  "gradients, while they are in the cache",
                  CIUIC_OPTION_ALL_RANKS_EQUAL));

  explicit Ddp(const Context& context)
      : Sharding(context),
        device_(context.device()),
        settings_{context.options().i64("bucket_size"),
                  context.options().boolean("name_bad_rank")} {}

  [[nodiscard]] const std::vector<ciuic_extent>& plan(const ciuic_shard_plan& request) override {
    extents_.clear();
    const OptimizerService optimizer(host());
    for (const ciuic_param& p : ArrayView<ciuic_param>(request.params)) {
      if (p.tied_to < 0) {
        add_extents(request, p, optimizer);
      }
    }
    return extents_;
  }

  void setup(const ciuic_shard_plan& request) override {
    if (parameters_ != nullptr) {
      throw Error(CIUIC_PRECONDITION, "sharding ddp is set up already");
    }
    check_params(request);
    params_ = request.params;
    auto parameters = std::make_unique<Parameters>(host(), device_, request);
    gradients_ = std::make_unique<Gradients>(host(), device_, request, settings_);
    parameters_ = std::move(parameters);
    units_.clear();
    for (const ciuic_param& p : params_) {
      units_.resize(std::max(units_.size(), size_t{p.unit} + 1));
      units_[p.unit].params.push_back(p.id);
    }
  }

  void begin_step(const ciuic_step& step) override {
    check_set_up();
    if ((step.flags & CIUIC_STEP_ANY_WORLD) != 0) {
      throw Error(CIUIC_UNIMPLEMENTED,
                  "sharding ddp sums in the order of the communicator, not as any_world asks");
    }
    gradients_->begin_step();
    is_stepped_ = false;
  }

  [[nodiscard]] const std::vector<ciuic_binding>& bind(const ciuic_use& use,
                                                       const ciuic_stream* stream, Work&) override {
    Unit& unit = unit_of(use);
    if (unit.depth == unit.frames.size()) {
      unit.frames.emplace_back(unit.params.size());
    }
    std::vector<ciuic_binding>& frame = unit.frames[unit.depth];
    const bool is_idle = (use.flags & CIUIC_USE_IDLE) != 0;
    for (size_t i = 0; i < unit.params.size(); ++i) {
      const uint64_t id = unit.params[i];
      Gradients::Target target{nullptr, false};
      if (writes_gradients(use.pass)) {
        target = gradients_->bind(id, is_idle, stream);
      }
      frame[i] = {sizeof(ciuic_binding), target.is_garbage ? uint32_t{CIUIC_BINDING_OVERWRITE} : 0U,
                  id, parameters_->value(id), target.grad};
    }
    ++unit.depth;
    return frame;
  }

  void drop(const ciuic_use& use, const ciuic_stream*) override {
    Unit& unit = unit_of(use);
    if (unit.depth == 0) {
      throw Error(CIUIC_PRECONDITION, "sharding ddp: unit " + std::to_string(use.unit) +
                                          " is dropped more often than bound");
    }
    --unit.depth;
  }

  void grad_ready(const ciuic_use& use, const ciuic_stream* stream) override {
    for (const uint64_t id : unit_of(use).params) {
      gradients_->written(id, (use.flags & CIUIC_USE_IDLE) != 0, stream);
    }
    if ((use.flags & CIUIC_USE_LAST_GRAD) != 0) {
      gradients_->unit_ready(use.unit, stream);
    }
  }

  void end_backward(const ciuic_stream* stream) override {
    check_set_up();
    gradients_->flush(stream);
  }

  void grad_stats(const ciuic_grad_request& request, const ciuic_stream* stream,
                  ciuic_grad_stats& out) override {
    check_set_up();
    if (request.norm != CIUIC_NORM_L2) {
      throw Error(CIUIC_UNIMPLEMENTED,
                  "ddp gives the L2 norm (1), asked for norm " + std::to_string(request.norm));
    }
    gradients_->stats(request.grad_scale, stream, out);
  }

  [[nodiscard]] Work step(const ciuic_step_update& update, const ciuic_stream* stream) override {
    check_set_up();
    const std::vector<const ciuic_tensor*>& sums = gradients_->sums(stream);
    if (std::exchange(is_stepped_, true)) {
      throw Error(CIUIC_PRECONDITION,
                  "sharding ddp: a second step with the same gradients; begin_step comes first");
    }
    if ((update.flags & CIUIC_UPDATE_SKIP) == 0) {
      parameters_->update(update, sums, stream);
    }
    return {};
  }

  void rollback(int64_t timeout_ns) override {
    check_set_up();
    for (Unit& unit : units_) {
      unit.depth = 0;
    }
    gradients_->rollback(timeout_ns);
  }

  void save(const StateWriter& writer) override {
    check_set_up();
    parameters_->save(writer);
  }
  void load(const StateReader& reader) override {
    check_set_up();
    parameters_->load(reader);
  }

  void export_roles(uint32_t role_bits, const StateWriter& writer) override {
    check_set_up();
    constexpr uint32_t kValue = 1U << CIUIC_ROLE_VALUE;
    constexpr uint32_t kGrad = 1U << CIUIC_ROLE_GRAD;
    if ((role_bits & ~(kValue | kGrad)) != 0) {
      throw Error(CIUIC_UNIMPLEMENTED, "sharding ddp exports values and gradients only");
    }
    if ((role_bits & kValue) != 0) {
      parameters_->save_values(writer);
    }
    if ((role_bits & kGrad) != 0) {
      (void)gradients_->sums(nullptr);
      for (const ciuic_param& p : params_) {
        if (p.tied_to < 0 && (p.flags & CIUIC_PARAM_FROZEN) == 0) {
          parameters_->write(writer, "grad", p.id, gradients_->flat(p.id));
        }
      }
    }
  }

  void quiesce(int64_t timeout_ns) override {
    if (gradients_ != nullptr) {
      gradients_->rollback(timeout_ns);
    }
  }

 private:
  struct Unit {
    std::vector<uint64_t> params;
    std::vector<std::vector<ciuic_binding>> frames;  // one per nested bind
    size_t depth = 0;
  };

  static void check_params(const ciuic_shard_plan& request) {
    uint64_t index = 0;
    for (const ciuic_param& p : ArrayView<ciuic_param>(request.params)) {
      const std::string who = "sharding ddp: parameter " + std::string(to_view(p.name));
      if (p.id != index++) {
        throw Error(CIUIC_INVALID,
                    who + " has id " + std::to_string(p.id) + ", expected its index");
      }
      if (p.sum_group != 0) {
        throw Error(CIUIC_UNIMPLEMENTED,
                    who + " asks for a second sum over group " + std::to_string(p.sum_group));
      }
      const ciuic_param& root =
          ArrayView<ciuic_param>(request.params)[root_of(request.params, p.id)];
      if (root.num_elements != p.num_elements || !same(root.value, p.value) ||
          !same(root.grad, p.grad) || root.group != p.group) {
        throw Error(CIUIC_INVALID, who + " is tied to " + std::string(to_view(root.name)) +
                                       " but differs in size, type or group");
      }
    }
  }

  void add_extents(const ciuic_shard_plan& request, const ciuic_param& p,
                   const OptimizerService& optimizer) {
    const ciuic_group& group = find_group(request.groups, p);
    for (int32_t owner = 0; owner < group.size; ++owner) {
      if ((request.flags & CIUIC_PLAN_OWN) != 0 && owner != group.rank) {
        continue;
      }
      const auto add = [&](uint32_t role, ciuic_dtype dtype) {
        extents_.push_back({p.id, 0, p.num_elements, owner, role, dtype, 0});
      };
      add(CIUIC_ROLE_VALUE, p.value);
      if ((p.flags & CIUIC_PARAM_FROZEN) != 0) {
        continue;
      }
      add(CIUIC_ROLE_GRAD, p.grad);
      if (group.size > 1 && !same(p.grad, p.reduce)) {
        add(CIUIC_ROLE_REDUCE, p.reduce);
      }
      if (has_master(p)) {
        add(CIUIC_ROLE_MASTER, p.master);
      }
      for (const ciuic_state_spec& spec : optimizer.state_spec(host(), p)) {
        add(CIUIC_ROLE_MOMENT, spec.dtype);
      }
    }
  }

  void check_set_up() const {
    if (parameters_ == nullptr) {
      throw Error(CIUIC_PRECONDITION, "sharding ddp is used before setup");
    }
  }
  Unit& unit_of(const ciuic_use& use) {
    check_set_up();
    if (use.unit >= units_.size()) {
      throw Error(CIUIC_INVALID, "sharding ddp: got unit " + std::to_string(use.unit) +
                                     ", there are " + std::to_string(units_.size()));
    }
    return units_[use.unit];
  }

  ciuic_device device_;
  Gradients::Settings settings_;
  std::vector<ciuic_extent> extents_;
  ArrayView<ciuic_param> params_{ciuic_array{nullptr, 0, 0}};
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<Gradients> gradients_;
  std::vector<Unit> units_;
  bool is_stepped_ = false;  // the gradients of this step are used up
};

}  // namespace
}  // namespace ciuic::plugins::ddp

CIUIC_PLUGINS(ciuic::plugins::ddp::Ddp)
