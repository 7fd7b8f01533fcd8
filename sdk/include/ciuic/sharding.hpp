// SPDX-License-Identifier: MIT
//
// Base class of sharding plugins. The contract, and the order of calls, is in ciuic/abi/sharding.h.
#pragma once

#include <vector>

#include <ciuic/plugin.hpp>

namespace ciuic {

class Sharding : public Instance {
 public:
  static constexpr uint32_t kind = CIUIC_KIND_SHARDING;
  using Instance::Instance;

  /// Who holds what. Pure; also serves estimates. Lives until the next call.
  [[nodiscard]] virtual const std::vector<ciuic_extent>& plan(const ciuic_shard_plan&) = 0;
  virtual void setup(const ciuic_shard_plan&) = 0;
  virtual void begin_step(const ciuic_step&) = 0;
  /// Bindings live until the matching drop.
  [[nodiscard]] virtual const std::vector<ciuic_binding>& bind(const ciuic_use&,
                                                               const ciuic_stream*, Work&) = 0;
  virtual void drop(const ciuic_use&, const ciuic_stream*) = 0;
  virtual void grad_ready(const ciuic_use&, const ciuic_stream*) = 0;
  virtual void end_backward(const ciuic_stream*) = 0;
  virtual void grad_stats(const ciuic_grad_request&, const ciuic_stream*,
                          ciuic_grad_stats& out) = 0;
  [[nodiscard]] virtual Work step(const ciuic_step_update&, const ciuic_stream*) = 0;
  virtual void rollback(int64_t timeout_ns) = 0;
  /// Writes roles (bits 1 << CIUIC_ROLE_) as state.
  virtual void export_roles(uint32_t /*role_bits*/, const StateWriter&) {
    raise(Error(CIUIC_UNIMPLEMENTED, "this sharding strategy exports no roles"));
  }

  static const ciuic_sharding_vt& table() {
    static const ciuic_sharding_vt vt = make_table();
    return vt;
  }

 private:
  static ciuic_sharding_vt make_table() {
    ciuic_sharding_vt vt{};
    vt.struct_size = sizeof(vt);
    vt.plan = [](ciuic_instance* self, const ciuic_shard_plan* request, ciuic_array* extents) {
      auto& s = from_handle<Sharding>(self);
      return guard_running(s, [&] { *extents = to_array(s.plan(*request)); });
    };
    vt.setup = [](ciuic_instance* self, const ciuic_shard_plan* request) {
      auto& s = from_handle<Sharding>(self);
      return guard_running(s, [&] { s.setup(*request); });
    };
    vt.begin_step = [](ciuic_instance* self, const ciuic_step* step) {
      auto& s = from_handle<Sharding>(self);
      return guard_running(s, [&] { s.begin_step(*step); });
    };
    vt.bind = [](ciuic_instance* self, const ciuic_use* use, const ciuic_stream* stream,
                 ciuic_array* bindings, ciuic_work** work) {
      auto& s = from_handle<Sharding>(self);
      *work = nullptr;
      return guard_running(s, [&] {
        Work pending;
        *bindings = to_array(s.bind(*use, stream, pending));
        *work = pending.release();
      });
    };
    vt.drop = [](ciuic_instance* self, const ciuic_use* use, const ciuic_stream* stream) {
      auto& s = from_handle<Sharding>(self);
      return guard_running(s, [&] { s.drop(*use, stream); });
    };
    vt.grad_ready = [](ciuic_instance* self, const ciuic_use* use, const ciuic_stream* stream) {
      auto& s = from_handle<Sharding>(self);
      return guard_running(s, [&] { s.grad_ready(*use, stream); });
    };
    vt.end_backward = [](ciuic_instance* self, const ciuic_stream* stream) {
      auto& s = from_handle<Sharding>(self);
      return guard_running(s, [&] { s.end_backward(stream); });
    };
    vt.grad_stats = [](ciuic_instance* self, const ciuic_grad_request* request,
                       const ciuic_stream* stream, ciuic_grad_stats* out) {
      auto& s = from_handle<Sharding>(self);
      return guard_running(s, [&] { s.grad_stats(*request, stream, *out); });
    };
    vt.step = [](ciuic_instance* self, const ciuic_step_update* update, const ciuic_stream* stream,
                 ciuic_work** work) {
      auto& s = from_handle<Sharding>(self);
      *work = nullptr;
      return guard_running(s, [&] { *work = s.step(*update, stream).release(); });
    };
    vt.rollback = [](ciuic_instance* self, int64_t timeout_ns) {
      auto& s = from_handle<Sharding>(self);
      return guard_running(s, [&] { s.rollback(timeout_ns); });
    };
    vt.export_roles = [](ciuic_instance* self, uint32_t role_bits, const ciuic_writer* writer) {
      auto& s = from_handle<Sharding>(self);
      return guard_running(s, [&] { s.export_roles(role_bits, StateWriter(s.host(), writer)); });
    };
    return vt;
  }
};

}  // namespace ciuic
