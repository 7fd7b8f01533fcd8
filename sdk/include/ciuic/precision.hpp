// SPDX-License-Identifier: MIT
//
// Base class of precision plugins. The contract is in ciuic/abi/precision.h. A policy without
// kernels of its own needs dtype_for alone.
#pragma once

#include <string_view>

#include <ciuic/plugin.hpp>

namespace ciuic {

class Precision : public Instance {
 public:
  static constexpr uint32_t kind = CIUIC_KIND_PRECISION;
  using Instance::Instance;

  /// The dtype of a CIUIC_ROLE_ in a module ("model" is the residual stream). Pure.
  [[nodiscard]] virtual ciuic_dtype dtype_for(std::string_view module, uint32_t role) const = 0;
  virtual void attach(ArrayView<ciuic_module>) {}
  /// Bits 1 << CIUIC_GEMM_: the passes whose product this policy computes. Pure. This and loss_scale
  /// return no status: they must not throw.
  [[nodiscard]] virtual uint32_t hooks(uint32_t /*module*/, ciuic_device) const { return 0; }
  [[nodiscard]] virtual double loss_scale() const { return 1.0; }
  virtual void update(const ciuic_precision_update&) {}
  virtual void format(const ciuic_cast&, ciuic_format&) const { unsupported("format"); }
  virtual void cast(const ciuic_cast&, const ciuic_stream*) { unsupported("cast"); }
  virtual void gemm(const ciuic_gemm&, const ciuic_stream*) { unsupported("gemm"); }

  static const ciuic_precision_vt& table() {
    static const ciuic_precision_vt vt = make_table();
    return vt;
  }

 private:
  [[noreturn]] static void unsupported(const char* what) {
    raise(Error(CIUIC_UNIMPLEMENTED, std::string("this precision policy has no ") + what));
  }
  static ciuic_precision_vt make_table() {
    ciuic_precision_vt vt{};
    vt.struct_size = sizeof(vt);
    vt.dtype_for = [](ciuic_instance* self, ciuic_str module, uint32_t role, ciuic_dtype* out) {
      auto& p = from_handle<Precision>(self);
      return guard(p.host(), [&] { *out = p.dtype_for(to_view(module), role); });
    };
    vt.attach = [](ciuic_instance* self, ciuic_array modules) {
      auto& p = from_handle<Precision>(self);
      return guard_running(p, [&] { p.attach(modules); });
    };
    vt.hooks = [](ciuic_instance* self, uint32_t module, ciuic_device device) {
      return from_handle<Precision>(self).hooks(module, device);
    };
    vt.loss_scale = [](ciuic_instance* self) { return from_handle<Precision>(self).loss_scale(); };
    vt.update = [](ciuic_instance* self, const ciuic_precision_update* update) {
      auto& p = from_handle<Precision>(self);
      return guard_running(p, [&] { p.update(*update); });
    };
    vt.format = [](ciuic_instance* self, const ciuic_cast* cast, ciuic_format* out) {
      auto& p = from_handle<Precision>(self);
      return guard(p.host(), [&] { p.format(*cast, *out); });
    };
    vt.cast = [](ciuic_instance* self, const ciuic_cast* cast, const ciuic_stream* stream) {
      auto& p = from_handle<Precision>(self);
      return guard_running(p, [&] { p.cast(*cast, stream); });
    };
    vt.gemm = [](ciuic_instance* self, const ciuic_gemm* gemm, const ciuic_stream* stream) {
      auto& p = from_handle<Precision>(self);
      return guard_running(p, [&] { p.gemm(*gemm, stream); });
    };
    return vt;
  }
};

}  // namespace ciuic
