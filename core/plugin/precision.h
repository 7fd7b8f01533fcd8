// SPDX-License-Identifier: MIT
//
// The host's view of a precision plugin.
#pragma once

#include <string_view>

#include <ciuic/abi/precision.h>
#include <ciuic/view.hpp>

#include "core/plugin/instance.h"

namespace ciuic::core {

class PrecisionPlugin {
 public:
  template <typename... Args>
  explicit PrecisionPlugin(Args&&... args) : instance_(std::forward<Args>(args)...) {}

  [[nodiscard]] const Instance& instance() const noexcept { return instance_; }

  [[nodiscard]] ciuic_dtype dtype_for(std::string_view module, uint32_t role) const {
    ciuic_dtype dtype{};
    instance_.check(vt().dtype_for(instance_.self(), to_str(module), role, &dtype),
                    "precision.dtype_for");
    return dtype;
  }
  void attach(ciuic_array modules) const {
    instance_.check(vt().attach(instance_.self(), modules), "precision.attach");
  }
  [[nodiscard]] uint32_t hooks(uint32_t module, ciuic_device device) const {
    const uint32_t passes = vt().hooks(instance_.self(), module, device);
    instance_.check_escaped("precision.hooks");
    return passes;
  }
  [[nodiscard]] double loss_scale() const {
    const double scale = vt().loss_scale(instance_.self());
    instance_.check_escaped("precision.loss_scale");
    return scale;
  }
  void update(const ciuic_precision_update& update) const {
    ++values_version_;
    instance_.check(vt().update(instance_.self(), &update), "precision.update");
  }
  /// Of a pass that `hooks` names. Blocks: operands lie in host memory.
  void gemm(const ciuic_gemm& gemm) const {
    if (!CIUIC_CAN(&vt(), gemm)) {
      throw Failure(ExitCode::Plugin,
                    "precision " + instance_.name() + ": hooks takes products, but it has no gemm",
                    "ciuic plugin check says more about the plugin");
    }
    instance_.check(vt().gemm(instance_.self(), &gemm, nullptr), "precision.gemm");
  }
  /// Counts what may have changed parameter values, from 1: the b_version of products with them.
  [[nodiscard]] uint64_t values_version() const { return values_version_; }

 private:
  [[nodiscard]] const ciuic_precision_vt& vt() const noexcept {
    return instance_.vt<ciuic_precision_vt>();
  }

  Instance instance_;
  mutable uint64_t values_version_ = 1;
};

}  // namespace ciuic::core
