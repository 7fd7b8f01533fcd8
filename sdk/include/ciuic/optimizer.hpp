// SPDX-License-Identifier: MIT
//
// Base class of optimizer plugins. The contract is in ciuic/abi/optimizer.h.
#pragma once

#include <vector>

#include <ciuic/plugin.hpp>

namespace ciuic {

class Optimizer : public Instance {
 public:
  static constexpr uint32_t kind = CIUIC_KIND_OPTIMIZER;
  using Instance::Instance;

  /// Elements that the rule needs whole. Pure.
  [[nodiscard]] virtual int64_t granule(const ciuic_param&) const { return 1; }
  /// The rule's state tensors for a parameter; lives until destroy.
  [[nodiscard]] virtual const std::vector<ciuic_state_spec>& state_spec(
      const ciuic_param&) const = 0;
  /// One step over disjoint shards. Any thread, concurrent.
  virtual void update(ArrayView<ciuic_update> updates, const ciuic_stream* stream) const = 0;

  static const ciuic_optimizer_vt& table() {
    static const ciuic_optimizer_vt vt = make_table();
    return vt;
  }

 private:
  static ciuic_optimizer_vt make_table() {
    ciuic_optimizer_vt vt{};
    vt.struct_size = sizeof(vt);
    vt.granule = [](ciuic_instance* self, const ciuic_param* param, int64_t* elements) {
      auto& o = from_handle<Optimizer>(self);
      return guard(o.host(), [&] { *elements = o.granule(*param); });
    };
    vt.state_spec = [](ciuic_instance* self, const ciuic_param* param, ciuic_array* specs) {
      auto& o = from_handle<Optimizer>(self);
      return guard_running(o, [&] { *specs = to_array(o.state_spec(*param)); });
    };
    vt.update = [](ciuic_instance* self, ciuic_array updates, const ciuic_stream* stream) {
      auto& o = from_handle<Optimizer>(self);
      return guard_running(o, [&] { o.update(updates, stream); });
    };
    return vt;
  }
};

/// A moment: one element of state per element of the parameter. `name` lives as long as the
/// library.
inline ciuic_state_spec moment_spec(const char* name, ciuic_dtype dtype, double initial = 0.0) {
  ciuic_state_spec spec{};
  spec.struct_size = sizeof(spec);
  spec.name = to_str(name);
  spec.dtype = dtype;
  spec.granule = 1;
  spec.per_granule = 1;
  spec.initial = initial;
  return spec;
}

}  // namespace ciuic
