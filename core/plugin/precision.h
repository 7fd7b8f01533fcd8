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
    instance_.check(vt().update(instance_.self(), &update), "precision.update");
  }

 private:
  [[nodiscard]] const ciuic_precision_vt& vt() const noexcept {
    return instance_.vt<ciuic_precision_vt>();
  }

  Instance instance_;
};

}  // namespace ciuic::core
