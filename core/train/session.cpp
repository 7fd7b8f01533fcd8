// SPDX-License-Identifier: MIT
#include "core/train/session.h"

#include <filesystem>
#include <numeric>
#include <system_error>

#include <ATen/Parallel.h>

#include <ciuic/view.hpp>

#include "core/parallel/comm_service.h"
#include "core/parallel/kv_service.h"
#include "core/plugin/kind.h"
#include "core/plugin/thread_service.h"
#include "core/train/run_data.h"
#include "core/train/tensor_bridge.h"
#include "core/train/tensor_service.h"

namespace ciuic::core {
namespace {

constexpr int64_t kFlushTimeoutNs = 2'000'000'000;

/// LibTorch's own pool serves plugins too, so cores are not used twice.
void parallel_on_torch(int64_t count, int64_t grain,
                       const std::function<void(int64_t, int64_t)>& body) {
  at::parallel_for(0, count, grain, body);
}

/// A plugin's own files go to the run's folder; an evaluation has none.
Placement placement_of(const RankIdentity& id, const RunPlan& plan) {
  Placement p;
  std::error_code ec;
  if (std::filesystem::is_directory(plan.config.run.output, ec)) {
    p.output = plan.config.run.output;
  }
  p.rank = id.rank;
  p.world = id.world;
  p.local_rank = id.local_rank;
  p.local_world = id.local_world;
  return p;
}

/// "model.layers.0.self_attn.q_a_proj.weight" is the parameter, the rest before ".weight" (or
/// ".bias") its module.
std::string module_of(const std::string& parameter) {
  for (const std::string_view suffix : {".weight", ".bias"}) {
    if (parameter.size() > suffix.size() && parameter.ends_with(suffix)) {
      return parameter.substr(0, parameter.size() - suffix.size());
    }
  }
  return parameter;
}

}  // namespace

Session::Session(const RunPlan& plan, const RankIdentity& identity, Rendezvous& rendezvous,
                 int threads, Log& log)
    : plan_(plan),
      identity_(identity),
      threads_(threads),
      log_(log),
      rendezvous_(rendezvous),
      data_(open_data(plan)) {
  data_service_.struct_size = sizeof(data_service_);
  data_service_.ctx = &data_;
  data_service_.samples = [](void* ctx) {
    return static_cast<uint64_t>(static_cast<Dataset*>(ctx)->train_rows());
  };
  data_service_.lengths = [](void* ctx, uint64_t, uint64_t count, uint64_t* tokens) {
    std::fill_n(tokens, count,
                static_cast<uint64_t>(static_cast<Dataset*>(ctx)->sequence_tokens()));
    return static_cast<ciuic_status*>(nullptr);
  };
  for (const ChosenPlugin& chosen : plan.profilers) {
    profilers_.push_back(std::make_unique<Instance>(chosen.found, host_for(chosen), chosen.options,
                                                    placement_of(identity_, plan_),
                                                    decorators_of(chosen)));
    events_.add_profiler(*profilers_.back());
  }
  create_groups();
  precision_ = create<PrecisionPlugin>(CIUIC_KIND_PRECISION);
  precision_service_ = {sizeof(precision_service_), CIUIC_KIND_PRECISION,
                        precision_->instance().table(), precision_->instance().self()};
  optimizer_ = create<Instance>(CIUIC_KIND_OPTIMIZER);
  optimizer_service_ = {sizeof(optimizer_service_), CIUIC_KIND_OPTIMIZER, optimizer_->table(),
                        optimizer_->self()};
  create_model();
  describe_parameters();
  sharding_ = create<ShardingPlugin>(CIUIC_KIND_SHARDING);
  set_up_sharding();
  scheduler_ = create<BatchSchedulerPlugin>(CIUIC_KIND_BATCH_SCHEDULER);
  checkpoint_ = create<CheckpointPlugin>(CIUIC_KIND_CHECKPOINT);
}

Session::~Session() {
  quiesce();
  events_.remove_profilers();
}

void Session::quiesce() noexcept { events_.flush(kFlushTimeoutNs); }

std::unique_ptr<HostContext> Session::host_for(const ChosenPlugin& chosen) {
  auto host = std::make_unique<HostContext>(chosen.found.descriptor->name, log_);
  host->own_service<ThreadService>("ciuic.threads", static_cast<unsigned>(threads_),
                                   &parallel_on_torch);
  host->own_service<TensorService>("ciuic.tensor");
  host->add_service("ciuic.metrics", &events_.service());
  host->add_service("ciuic.data", &data_service_);
  if (!groups_.empty()) {
    host->own_service<CommService>("ciuic.comm", group_list_);
  }
  if (precision_) {
    host->add_service("ciuic.precision", &precision_service_);
  }
  if (optimizer_) {
    host->add_service("ciuic.optimizer", &optimizer_service_);
  }
  return host;
}

template <typename T>
std::unique_ptr<T> Session::create(uint32_t kind) {
  const ChosenPlugin& chosen = plan_.plugin(kind);
  return std::make_unique<T>(chosen.found, host_for(chosen), chosen.options,
                             placement_of(identity_, plan_), decorators_of(chosen));
}

Decorate Session::decorators_of(const ChosenPlugin& chosen) {
  DecoratorContext context;
  context.kind = chosen.found.descriptor->kind;
  context.plugin = chosen.found.descriptor->name;
  context.version = chosen.found.descriptor->version;
  context.options = chosen.options.toml_entries();
  context.rank = identity_.rank;
  context.world = identity_.world;
  context.folder = plan_.config.run.output;
  context.log = &log_;
  context.data = &data_service_;
  context.collective_timeout = plan_.collective_timeout();
  context.metric = [this](const std::string& name, double value) {
    const ciuic_metrics_service& metrics = events_.service();
    metrics.set(metrics.ctx, to_str(name), {nullptr, 0}, value);
  };
  context.make_candidate = [this, kind = context.kind](const std::string& name) {
    return make_candidate(kind, name);
  };
  return make_decorate(chosen.decorators, std::move(context));
}

std::unique_ptr<Instance> Session::make_candidate(uint32_t kind, const std::string& name) {
  const ChosenPlugin& chosen = plan_.candidates.at(std::string(kind_name(kind)) + "." + name);
  auto host = host_for(chosen);
  if (kind == CIUIC_KIND_COMMUNICATOR) {
    host->own_service<KvService>("ciuic.kv", rendezvous_, host->plugin() + "/shadow");
  }
  return std::make_unique<Instance>(chosen.found, std::move(host), chosen.options,
                                    placement_of(identity_, plan_));
}

void Session::create_groups() {
  const ChosenPlugin& chosen = plan_.plugin(CIUIC_KIND_COMMUNICATOR);
  auto host = host_for(chosen);
  host->own_service<KvService>("ciuic.kv", rendezvous_, host->plugin() + "/1");
  const auto all =
      std::make_shared<CommunicatorPlugin>(chosen.found, std::move(host), chosen.options,
                                           placement_of(identity_, plan_), decorators_of(chosen));
  std::vector<int32_t> everyone(static_cast<size_t>(identity_.world));
  std::iota(everyone.begin(), everyone.end(), 0);
  // Every axis but data has one rank now, so these are all the same ranks, in one order of
  // collectives.
  uint32_t id = 0;
  for (const char* name : {"world", "data", "expert_data", "control"}) {
    groups_.push_back(
        std::make_unique<Group>(name, ++id, all, identity_.rank, everyone, clock_, events_));
    group_list_.push_back(groups_.back().get());
  }
}

void Session::create_model() {
  const at::ScalarType activation =
      to_scalar_type(precision_->dtype_for("model", CIUIC_ROLE_ACTIVATION));
  model_ = std::make_unique<Model>(plan_.model, activation, at::Device(at::kCPU));
}

void Session::describe_parameters() {
  std::vector<std::string> names;
  std::vector<ciuic_module> modules;
  names.reserve(model_->parameters().size());
  const uint32_t data_group = groups_[1]->c().id;
  const uint32_t expert_group = groups_[2]->c().id;
  offsets_.reserve(model_->parameters().size());
  for (const ParameterSpec& spec : model_->parameters()) {
    names.push_back(module_of(spec.name));
    const std::string& module = names.back();
    offsets_.emplace_back(spec.shape.size(), 0);
    ciuic_param p{};
    p.struct_size = sizeof(p);
    p.flags = CIUIC_PARAM_IN_NORM | (spec.is_expert ? uint32_t{CIUIC_PARAM_EXPERT} : 0u);
    p.id = parameters_.size();
    p.name = to_str(spec.name);
    p.unit = static_cast<uint32_t>(spec.unit);
    p.group = spec.is_expert ? expert_group : data_group;
    p.tied_to = static_cast<int32_t>(spec.tied_to);
    p.value = precision_->dtype_for(module, CIUIC_ROLE_VALUE);
    p.grad = precision_->dtype_for(module, CIUIC_ROLE_GRAD);
    p.reduce = precision_->dtype_for(module, CIUIC_ROLE_REDUCE);
    p.master = precision_->dtype_for(module, CIUIC_ROLE_MASTER);
    p.ndim = static_cast<int32_t>(spec.shape.size());
    p.shape = p.global_shape = spec.shape.data();
    p.offset = offsets_.back().data();
    p.num_elements = spec.num_elements();
    p.weight_decay = 1.0;
    p.lr_scale = 1.0;
    optimizer_->check(
        optimizer_->vt<ciuic_optimizer_vt>().granule(optimizer_->self(), &p, &p.granule),
        "optimizer.granule");
    parameters_.push_back(p);

    ciuic_module m{};
    m.struct_size = sizeof(m);
    m.id = static_cast<uint32_t>(p.id);
    m.name = to_str(module);
    modules.push_back(m);
  }
  precision_->attach(to_array(modules));
  for (const ciuic_module& m : modules) {
    if (precision_->hooks(m.id, {CIUIC_DEVICE_CPU, 0}) != 0) {
      throw Failure(ExitCode::Plugin,
                    "precision " + precision_->instance().name() +
                        " computes products of its own, which is not built yet",
                    "choose another precision");
    }
  }
}

void Session::set_up_sharding() {
  for (const auto& group : groups_) {
    abi_groups_.push_back(group->c());
  }
  ciuic_shard_plan request{};
  request.struct_size = sizeof(request);
  request.params = to_array(parameters_);
  request.groups = to_array(abi_groups_);
  request.rank = identity_.rank;
  request.world = identity_.world;
  sharding_->setup(request);
}

std::vector<ciuic_state_spec> Session::optimizer_state(const ciuic_param& parameter) const {
  ciuic_array specs{};
  optimizer_->check(
      optimizer_->vt<ciuic_optimizer_vt>().state_spec(optimizer_->self(), &parameter, &specs),
      "optimizer.state_spec");
  std::vector<ciuic_state_spec> out;
  for (const ciuic_state_spec& spec : ArrayView<ciuic_state_spec>(specs)) {
    out.push_back(spec);
  }
  return out;
}

}  // namespace ciuic::core
