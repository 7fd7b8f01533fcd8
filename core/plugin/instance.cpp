// SPDX-License-Identifier: MIT
#include "core/plugin/instance.h"

#include <ciuic/host.hpp>
#include <ciuic/view.hpp>

#include "core/plugin/kind.h"
#include "core/plugin/trampoline/modules.h"
#include "core/plugin/trampoline/trampoline.h"

namespace ciuic::core {
namespace {

constexpr int64_t kQuiesceTimeoutNs = 5'000'000'000;
constexpr const char* kPluginBug = "this is a bug in the plugin";

ciuic_create_args create_args(const ciuic_descriptor& d, const ciuic_host* host,
                              const PluginOptions& options, const Placement& p) {
  ciuic_create_args args{};
  args.struct_size = sizeof(args);
  args.host = host;
  args.options = options.array();
  args.rank = p.rank;
  args.world = p.world;
  args.local_rank = p.local_rank;
  args.local_world = p.local_world;
  args.device = p.device;
  args.name = to_str(d.name);
  args.generation = p.generation;
  args.output = to_str(p.output);
  return args;
}

std::string name_of(const ciuic_descriptor& d) {
  return std::string(kind_name(d.kind)) + " " + d.name;
}

ExitCode create_exit_code(const ciuic_descriptor& d, int32_t code) {
  const bool rendezvous =
      d.kind == CIUIC_KIND_COMMUNICATOR && (code == CIUIC_UNAVAILABLE || code == CIUIC_DEADLINE);
  return rendezvous ? ExitCode::Environment : ExitCode::Plugin;
}

}  // namespace

ExitCode exit_code_of(uint32_t kind, int32_t code) {
  if (kind == CIUIC_KIND_CHECKPOINT) {
    return ExitCode::Storage;
  }
  if (kind == CIUIC_KIND_PRECISION && code == CIUIC_ABORTED) {
    return ExitCode::Numbers;  // a loss scale that can fall no further
  }
  switch (code) {
    case CIUIC_DEADLINE:
    case CIUIC_UNAVAILABLE:
    case CIUIC_ABORTED:
    case CIUIC_CANCELLED:
      return ExitCode::Communication;
    case CIUIC_EXHAUSTED:
      return ExitCode::OutOfMemory;
    case CIUIC_DATA_LOSS:
      return ExitCode::Storage;
    default:
      return kind == CIUIC_KIND_COMMUNICATOR ? ExitCode::Communication : ExitCode::Plugin;
  }
}

Instance::Instance(const FoundPlugin& plugin, std::unique_ptr<HostContext> host,
                   const PluginOptions& options, const Placement& placement,
                   const Decorate& decorate)
    : descriptor_(plugin.load()), host_(std::move(host)) {
  record_modules();  // the plugin's library is mapped by now
  const ciuic_create_args args = create_args(*descriptor_, host_->table(), options, placement);
  auto guard = std::make_shared<CallGuard>(*descriptor_, host_->table());
  ciuic_instance* made = nullptr;
  // A communicator's waits for its peers, who may be busy with other plugins: it has its own deadline.
  const bool is_wait = descriptor_->kind == CIUIC_KIND_COMMUNICATOR;
  if (ciuic_status* status = guard->call(kCreateCall, guard->number(), is_wait,
                                         [&] { return descriptor_->create(&args, &made); });
      status != nullptr) {
    const Error error = Host(host_->table()).take(status);
    Failure failure(create_exit_code(*descriptor_, error.code()),
                    name_of(*descriptor_) + " cannot start: " + error.what(),
                    guard->has_escaped() ? kPluginBug : "", {{"file", plugin.path}});
    if (error.code() == CIUIC_UNIMPLEMENTED) {
      throw NotServed(descriptor_->kind, std::move(failure));
    }
    throw failure;
  }
  if (made == nullptr) {
    throw Failure(ExitCode::Plugin,
                  name_of(*descriptor_) + ": create succeeded and gave no instance");
  }
  layers_ = make_trampoline(*descriptor_, made, std::move(guard));
  if (decorate) {
    layers_ = decorate(std::move(layers_));
  }
}

Instance::Instance(const Instance& parent, ciuic_instance* child)
    : descriptor_(parent.descriptor_), host_(parent.host_), layers_(&Layer::of(child)) {}

Instance::~Instance() { quiesce(kQuiesceTimeoutNs); }

void Instance::quiesce(int64_t timeout_ns) noexcept {
  const Host host(host_->table());
  if (ciuic_status* status = layers_->quiesce(timeout_ns); status != nullptr) {
    host.warn(std::string("quiesce: ") + host.take(status).what());
  }
}

std::string Instance::full_name() const { return name_of(*descriptor_); }

void Instance::check_escaped(const char* op) const {
  if (layers_->guard()->has_escaped()) {
    throw Failure(ExitCode::Plugin, name_of(*descriptor_) + ": " + layers_->guard()->escaped(),
                  kPluginBug, {{"op", op}});
  }
}

void Instance::check(ciuic_status* status, const char* op) const {
  if (status == nullptr) {
    return;
  }
  const Error error = Host(host_->table()).take(status);
  check_escaped(op);
  Failure failure(exit_code_of(descriptor_->kind, error.code()),
                  name_of(*descriptor_) + ": " + error.what());
  failure.with("op", op);
  if (error.peer() >= 0) {
    failure.with("peer", std::to_string(error.peer()));
  }
  throw failure;
}

void Instance::state_save(const ciuic_writer& writer) const {
  if (has_state()) {
    check(layers_->state_save(writer), "state_save");
  }
}

void Instance::state_load(const ciuic_reader& reader) const {
  if (has_state()) {
    check(layers_->state_load(reader), "state_load");
  }
}

std::string validate(const FoundPlugin& plugin, Log& log, const PluginOptions& options,
                     const Placement& placement) {
  const ciuic_descriptor& d = *plugin.load();
  if (d.validate == nullptr) {
    return "";
  }
  const HostContext host(d.name, log);
  const ciuic_create_args args = create_args(d, host.table(), options, placement);
  CallGuard guard(d, host.table());
  if (ciuic_status* status =
          guard.call(kValidateCall, guard.number(), false, [&] { return d.validate(&args); });
      status != nullptr) {
    return Host(host.table()).take(status).what();
  }
  return "";
}

}  // namespace ciuic::core
