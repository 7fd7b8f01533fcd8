// SPDX-License-Identifier: MIT
//
// A rank's run, assembled: one live instance of each kind, the groups, the data and the model, made
// in order and destroyed in reverse. The trainer walks over it; it decides nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ciuic/abi/optimizer.h>

#include "core/data/dataset.h"
#include "core/launch/environment.h"
#include "core/launch/startup_clock.h"
#include "core/log/log.h"
#include "core/model/model.h"
#include "core/parallel/comm_clock.h"
#include "core/parallel/group.h"
#include "core/parallel/mesh.h"
#include "core/parallel/rendezvous.h"
#include "core/plugin/batch_scheduler.h"
#include "core/plugin/checkpoint.h"
#include "core/plugin/decorator/decorate.h"
#include "core/plugin/events.h"
#include "core/plugin/precision.h"
#include "core/plugin/sharding.h"
#include "core/train/numbers_probe.h"
#include "core/train/parameter_table.h"
#include "core/train/policy_gemm.h"
#include "core/train/run_plan.h"

namespace ciuic::core {

class Session {
 public:
  /// Collective: creates the communicator and all that hangs on it. `rendezvous` joined already.
  /// All references must outlive it.
  /// `startup`: takes the time of opening the data, or nullptr.
  Session(const RunPlan& plan, const RankIdentity& identity, Rendezvous& rendezvous, int threads,
          Log& log, StartupClock* startup);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  [[nodiscard]] const RunPlan& plan() const { return plan_; }
  [[nodiscard]] const RankIdentity& identity() const { return identity_; }
  [[nodiscard]] bool is_first() const { return identity_.rank == 0; }
  [[nodiscard]] Log& log() { return log_; }
  [[nodiscard]] Events& events() { return events_; }
  [[nodiscard]] CommClock& comm_clock() { return clock_; }
  [[nodiscard]] const Group& control() const { return *groups_.back(); }
  [[nodiscard]] const Dataset& data() const { return data_; }
  [[nodiscard]] Model& model() { return *model_; }
  [[nodiscard]] const PrecisionPlugin& precision() const { return *precision_; }
  [[nodiscard]] const Instance& optimizer() const { return *optimizer_; }
  [[nodiscard]] const ShardingPlugin& sharding() const { return *sharding_; }
  [[nodiscard]] const BatchSchedulerPlugin& scheduler() const { return *scheduler_; }
  [[nodiscard]] const CheckpointPlugin& checkpoint() const { return *checkpoint_; }
  [[nodiscard]] const std::vector<ciuic_param>& parameters() const { return table_->parameters(); }
  /// The same of all ranks together: with every expert.
  [[nodiscard]] const std::vector<ciuic_param>& all_parameters() const {
    return (all_table_ ? *all_table_ : *table_).parameters();
  }
  /// The experts that a rank has.
  [[nodiscard]] ExpertShare expert_share(int rank) const;
  /// The profilers' last flush of a run that went well. Throws Failure (Plugin) when an exception
  /// comes out of one.
  void finish();

  /// From here on every product is looked at (numbers_probe.h). Before a trainer is made.
  void watch_numbers(const std::string& folder);

 private:
  std::unique_ptr<HostContext> host_for(const ChosenPlugin& chosen);
  Decorate decorators_of(const ChosenPlugin& chosen);
  std::unique_ptr<Instance> make_candidate(uint32_t kind, const std::string& name);
  template <typename T>
  std::unique_ptr<T> create(uint32_t kind);
  void create_groups();
  static std::unique_ptr<Group> split_off(const Group& world, const MeshGroup& part, uint32_t id);
  void create_model();
  void describe_parameters();
  void set_up_sharding();

  const RunPlan& plan_;
  const RankIdentity identity_;
  const int threads_;
  Log& log_;
  Rendezvous& rendezvous_;
  Events events_;
  CommClock clock_;
  Dataset data_;
  ciuic_data_service data_service_{};
  const std::vector<MeshGroup> mesh_;
  std::vector<std::unique_ptr<Group>> groups_;  // one for each of the mesh's, control last
  std::vector<Group*> group_list_;
  std::unique_ptr<PrecisionPlugin> precision_;
  ciuic_kind_service precision_service_{};
  std::unique_ptr<Instance> optimizer_;
  ciuic_kind_service optimizer_service_{};
  std::unique_ptr<ExpertExchange> expert_exchange_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ParameterTable> table_;
  std::vector<ParameterSpec> all_specs_;  // only where other ranks have other experts
  std::unique_ptr<ParameterTable> all_table_;
  std::unique_ptr<PolicyGemm> policy_gemm_;
  std::unique_ptr<NumbersProbe> numbers_probe_;
  std::vector<ciuic_group> abi_groups_;
  std::unique_ptr<ShardingPlugin> sharding_;
  std::unique_ptr<BatchSchedulerPlugin> scheduler_;
  std::unique_ptr<CheckpointPlugin> checkpoint_;
  std::vector<std::unique_ptr<Instance>> profilers_;
};

}  // namespace ciuic::core
