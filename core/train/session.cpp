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
#include "core/train/group_expert_exchange.h"
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

}  // namespace

Session::Session(const RunPlan& plan, const RankIdentity& identity, Rendezvous& rendezvous,
                 int threads, Log& log, StartupClock* startup)
    : plan_(plan),
      identity_(identity),
      threads_(threads),
      log_(log),
      rendezvous_(rendezvous),
      data_(open_data(plan, log)),
      mesh_(mesh_groups(identity.world, identity.rank,
                        static_cast<int>(plan.config.parallel.expert))) {
  if (startup != nullptr) {
    startup->lap("data");
  }
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
  events_.flush(kFlushTimeoutNs);  // nothing is left to do after finish()
  events_.remove_profilers();
}

void Session::finish() {
  events_.flush(kFlushTimeoutNs);
  for (const auto& profiler : profilers_) {
    profiler->check_escaped("profiler.flush");
  }
}

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
  try {
    return std::make_unique<Instance>(chosen.found, std::move(host), chosen.options,
                                      placement_of(identity_, plan_));
  } catch (const NotServed& refusal) {  // nobody else is taken in a candidate's place
    throw Failure(refusal);
  }
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
  Group world("world", 0, all, identity_.rank, everyone, clock_, events_);
  // Groups of all ranks are one communicator, with one order of collectives; smaller ones are split
  // off.
  uint32_t id = 0;
  for (const MeshGroup& g : mesh_) {
    ++id;
    groups_.push_back(g.ranks == everyone ? std::make_unique<Group>(g.name, id, all, g.rank,
                                                                    g.ranks, clock_, events_)
                                          : split_off(world, g, id));
    group_list_.push_back(groups_.back().get());
  }
}

std::unique_ptr<Group> Session::split_off(const Group& world, const MeshGroup& part, uint32_t id) {
  ciuic_split request{};
  request.struct_size = sizeof(request);
  request.ranks = part.ranks.data();
  request.count = static_cast<uint32_t>(part.ranks.size());
  request.name = to_str(part.name);
  return world.split(request, id);
}

ExpertShare Session::expert_share(int rank) const {
  const int64_t ranks = plan_.config.parallel.expert;
  return {rank % ranks, ranks};
}

void Session::create_model() {
  const at::ScalarType activation =
      to_scalar_type(precision_->dtype_for("model", CIUIC_ROLE_ACTIVATION));
  const ExpertShare share = expert_share(identity_.rank);
  model_ = std::make_unique<Model>(plan_.model, activation, at::Device(at::kCPU), share);
  model_->set_embedding_gradient_scale(plan_.config.optimizer.embedding_gradient_scale);
  if (share.ranks > 1) {
    const Group& group = *groups_.at(group_id(mesh_, "expert") - 1);
    expert_exchange_ = std::make_unique<GroupExpertExchange>(group, activation);
    model_->set_expert_exchange(expert_exchange_.get());
  }
}

void Session::describe_parameters() {
  const auto describe = [&](std::span<const ParameterSpec> specs) {
    return std::make_unique<ParameterTable>(specs, *precision_, *optimizer_, plan_.config.optimizer,
                                            group_id(mesh_, "data"),
                                            group_id(mesh_, "expert_data"));
  };
  table_ = describe(model_->parameters());
  if (plan_.config.parallel.expert > 1) {
    all_specs_ = parameter_specs(plan_.model);
    all_table_ = describe(all_specs_);
  }
  policy_gemm_ = std::make_unique<PolicyGemm>(*precision_, model_->parameters());
  model_->set_hooks(policy_gemm_->hooks());
}

void Session::watch_numbers(const std::string& folder) {
  numbers_probe_ = std::make_unique<NumbersProbe>(*policy_gemm_, model_->parameters(), events_,
                                                  ArchiveOpener(plan_.catalog, log_), folder,
                                                  identity_.rank, log_);
  model_->set_hooks(numbers_probe_->hooks());
}

void Session::set_up_sharding() {
  for (const auto& group : groups_) {
    abi_groups_.push_back(group->c());
  }
  ciuic_shard_plan request{};
  request.struct_size = sizeof(request);
  request.params = to_array(table_->parameters());
  request.groups = to_array(abi_groups_);
  request.rank = identity_.rank;
  request.world = identity_.world;
  sharding_->setup(request);
}

}  // namespace ciuic::core
