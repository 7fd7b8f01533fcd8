// SPDX-License-Identifier: MIT
//
// Base class of communicator plugins. The contract is in ciuic/abi/communicator.h.
#pragma once

#include <memory>

#include <ciuic/plugin.hpp>

namespace ciuic {

class Communicator : public Instance {
 public:
  static constexpr uint32_t kind = CIUIC_KIND_COMMUNICATOR;
  using Instance::Instance;

  /// CIUIC_COMM_ bits; 0 for what it cannot do. Pure.
  [[nodiscard]] virtual uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                                              ciuic_device device) const = 0;
  /// Starts a group of collectives; an empty Work means done.
  [[nodiscard]] virtual Work submit(ArrayView<ciuic_collective> collectives,
                                    const ciuic_stream* stream) = 0;
  /// A smaller group; NULL for a rank that is in none.
  [[nodiscard]] virtual std::unique_ptr<Communicator> split(const ciuic_split& request) = 0;
  /// Throws UNAVAILABLE, naming the peer.
  virtual void health() {}
  /// Pending and later works fail with `code` within 1 s.
  virtual void abort(int32_t code) noexcept = 0;

  static const ciuic_communicator_vt& table() {
    static const ciuic_communicator_vt vt = make_table();
    return vt;
  }

 private:
  static ciuic_communicator_vt make_table() {
    ciuic_communicator_vt vt{};
    vt.struct_size = sizeof(vt);
    vt.capabilities = [](ciuic_instance* self, uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                         ciuic_device device, uint64_t* bits) {
      auto& c = from_handle<Communicator>(self);
      return guard(c.host(), [&] { *bits = c.capabilities(op, reduce, dtype, device); });
    };
    vt.submit = [](ciuic_instance* self, ciuic_array collectives, const ciuic_stream* stream,
                   ciuic_work** work) {
      auto& c = from_handle<Communicator>(self);
      *work = nullptr;
      return guard_running(c, [&] { *work = c.submit(collectives, stream).release(); });
    };
    vt.split = [](ciuic_instance* self, const ciuic_split* request, ciuic_instance** out) {
      auto& c = from_handle<Communicator>(self);
      *out = nullptr;
      return guard_running(c, [&] {
        if (std::unique_ptr<Communicator> child = c.split(*request)) {
          *out = to_handle(child.release());
        }
      });
    };
    vt.health = [](ciuic_instance* self) {
      auto& c = from_handle<Communicator>(self);
      return guard_running(c, [&] { c.health(); });
    };
    vt.abort = [](ciuic_instance* self, int32_t code) {
      from_handle<Communicator>(self).abort(code);
    };
    return vt;
  }
};

}  // namespace ciuic
