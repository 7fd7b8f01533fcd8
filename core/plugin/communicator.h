// SPDX-License-Identifier: MIT
//
// The host's view of a communicator plugin. Used by one thread at a time, but for abort and health.
#pragma once

#include <memory>
#include <span>

#include <ciuic/abi/communicator.h>
#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

#include "core/plugin/instance.h"

namespace ciuic::core {

class CommunicatorPlugin {
 public:
  template <typename... Args>
  explicit CommunicatorPlugin(Args&&... args) : instance_(std::forward<Args>(args)...) {}

  [[nodiscard]] const Instance& instance() const noexcept { return instance_; }
  [[nodiscard]] const ciuic_communicator_vt& vt() const noexcept {
    return instance_.vt<ciuic_communicator_vt>();
  }

  /// CIUIC_COMM_ bits.
  [[nodiscard]] uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                                      ciuic_device device) const {
    uint64_t bits = 0;
    instance_.check(vt().capabilities(instance_.self(), op, reduce, dtype, device, &bits),
                    "communicator.capabilities");
    return bits;
  }

  /// NULL for a rank that is in no group.
  [[nodiscard]] std::unique_ptr<CommunicatorPlugin> split(const ciuic_split& request) const {
    ciuic_instance* child = nullptr;
    instance_.check(vt().split(instance_.self(), &request, &child), "communicator.split");
    return child == nullptr ? nullptr : std::make_unique<CommunicatorPlugin>(instance_, child);
  }

  void abort(int32_t code) const noexcept { vt().abort(instance_.self(), code); }

 private:
  Instance instance_;
};

}  // namespace ciuic::core
