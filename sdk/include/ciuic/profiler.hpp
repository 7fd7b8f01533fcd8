// SPDX-License-Identifier: MIT
//
// Base class of profiler plugins. The contract is in ciuic/abi/profiler.h.
#pragma once

#include <ciuic/plugin.hpp>

namespace ciuic {

class Profiler : public Instance {
 public:
  static constexpr uint32_t kind = CIUIC_KIND_PROFILER;
  using Instance::Instance;

  /// Bits 1 << CIUIC_CATEGORY_ of what it listens to. Pure.
  [[nodiscard]] virtual uint64_t mask() const noexcept = 0;
  /// Any thread, concurrent. Never blocks.
  virtual void emit(ArrayView<ciuic_event> events) noexcept = 0;
  virtual void flush(int64_t /*timeout_ns*/) {}

  static const ciuic_profiler_vt& table() {
    static const ciuic_profiler_vt vt = make_table();
    return vt;
  }

 private:
  static ciuic_profiler_vt make_table() {
    ciuic_profiler_vt vt{};
    vt.struct_size = sizeof(vt);
    vt.mask = [](ciuic_instance* self) { return from_handle<Profiler>(self).mask(); };
    vt.emit = [](ciuic_instance* self, ciuic_array events) {
      auto& p = from_handle<Profiler>(self);
      if (!p.is_quiet()) {
        p.emit(events);
      }
    };
    vt.flush = [](ciuic_instance* self, int64_t timeout_ns) {
      auto& p = from_handle<Profiler>(self);
      return guard_running(p, [&] { p.flush(timeout_ns); });
    };
    return vt;
  }
};

}  // namespace ciuic
