// SPDX-License-Identifier: MIT
//
// One live plugin instance of any kind: made from a found plugin and checked options, destroyed in
// order. The kinds' thin classes (sharding.h, ...) hold one and give its functions types and
// errors. What it shows is the outermost of its layers (trampoline/layer.h), never the plugin's own
// table and pointer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <ciuic/abi/plugin.h>

#include "core/config/plugin_options.h"
#include "core/log/failure.h"
#include "core/plugin/catalog.h"
#include "core/plugin/host_context.h"
#include "core/plugin/trampoline/layer.h"

namespace ciuic::core {

/// What create_args says about this process.
struct Placement {
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  int local_world = 1;
  ciuic_device device{CIUIC_DEVICE_CPU, 0};
  uint64_t generation = 1;
  std::string output;  // a folder for files of the instance's own; empty: none
};

/// Puts decorators around an instance's trampoline; see decorator/decorate.h.
using Decorate = std::function<std::unique_ptr<Layer>(std::unique_ptr<Layer>)>;

/// A plugin says at its start that it cannot serve here (UNIMPLEMENTED): another one may.
class NotServed : public Failure {
 public:
  NotServed(uint32_t kind, Failure failure) : Failure(std::move(failure)), kind_(kind) {}
  [[nodiscard]] uint32_t kind() const noexcept { return kind_; }

 private:
  uint32_t kind_;
};

class Instance {
 public:
  /// Throws Failure when create fails: Environment for a rendezvous that failed, else Plugin;
  /// NotServed.
  Instance(const FoundPlugin& plugin, std::unique_ptr<HostContext> host,
           const PluginOptions& options, const Placement& placement,
           const Decorate& decorate = nullptr);
  /// Takes over what `split` of `parent`'s table gave.
  Instance(const Instance& parent, ciuic_instance* child);
  Instance(Instance&&) = delete;
  Instance& operator=(Instance&&) = delete;
  ~Instance();

  [[nodiscard]] ciuic_instance* self() const noexcept { return layers_->handle(); }
  [[nodiscard]] const ciuic_descriptor& descriptor() const noexcept { return *descriptor_; }
  [[nodiscard]] const ciuic_host* host() const noexcept { return host_->table(); }
  [[nodiscard]] int64_t live_bytes() const noexcept { return host_->live_bytes(); }
  [[nodiscard]] std::string name() const { return descriptor_->name; }
  /// "optimizer adamw".
  [[nodiscard]] std::string full_name() const;

  template <typename Table>
  [[nodiscard]] const Table& vt() const noexcept {
    return *static_cast<const Table*>(layers_->table());
  }
  /// The kind's table, for other plugins.
  [[nodiscard]] const void* table() const noexcept { return layers_->table(); }

  /// Throws the Failure that a status stands for. `op` names the call: "sharding.step".
  void check(ciuic_status* status, const char* op) const;
  /// For functions that return no status: throws when an exception came out of the plugin.
  void check_escaped(const char* op) const;

  [[nodiscard]] bool has_state() const noexcept { return descriptor_->state_save != nullptr; }
  void state_save(const ciuic_writer& writer) const;
  void state_load(const ciuic_reader& reader) const;
  /// Waits until no work, thread or callback of the plugin is left; failures are logged, since what
  /// follows is destroy.
  void quiesce(int64_t timeout_ns) noexcept;

 private:
  const ciuic_descriptor* descriptor_;
  std::shared_ptr<HostContext> host_;  // shared with the instances that this one's plugin split off
  std::unique_ptr<Layer> layers_;
};

/// Runs the plugin's own check of its options against each other. The message of what it refuses;
/// empty when it does not.
std::string validate(const FoundPlugin& plugin, Log& log, const PluginOptions& options,
                     const Placement& placement);

/// The exit code that a plugin's status stands for, once a run is under way.
ExitCode exit_code_of(uint32_t kind, int32_t status_code);

}  // namespace ciuic::core
