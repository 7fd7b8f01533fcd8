// SPDX-License-Identifier: MIT
//
// `ciuic train --debug numbers`: looks at the operands and results of every linear module's products,
// names the first of a step that is not finite, and writes what that product was given into the
// run's folder, from where `ciuic replay` computes it again.
//
// It stands where a precision policy's products stand (policy_products.h), so that a run without it
// has no cost. First means first in time: activations in forward order, then gradients in backward
// order. Not looked at: what happens between two linear modules, which shows in the input of the
// next; and the router, whose input is that of the experts.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "core/log/log.h"
#include "core/plugin/archive_opener.h"
#include "core/plugin/events.h"
#include "core/train/policy_gemm.h"

namespace ciuic::core {

class NumbersProbe final : public PolicyProducts {
 public:
  /// All must outlive this object. `folder`: the run's.
  NumbersProbe(const PolicyGemm& policy, std::span<const ParameterSpec> specs, const Events& events,
               ArchiveOpener opener, std::string folder, int rank, Log& log);

  /// A hook for each parameter, in their order.
  [[nodiscard]] const std::vector<const ModuleHook*>& hooks() const { return by_parameter_; }

  void compute(const PolicyProduct& product) const override;
  void at_micro_batch(uint32_t index) const override { micro_batch_ = index; }

 private:
  void look_at(const PolicyProduct& product) const;
  [[nodiscard]] std::string write(const PolicyProduct& product) const;

  const PolicyGemm& policy_;
  const Events& events_;
  const ArchiveOpener opener_;
  const std::string folder_;
  const int rank_;
  Log& log_;
  std::deque<ModuleHook> hooks_;
  std::vector<const ModuleHook*> by_parameter_;
  // What it has seen so far.
  mutable uint32_t micro_batch_ = 0;
  mutable uint64_t found_at_step_ = ~uint64_t{0};
  mutable std::string file_;
};

/// "forward", "grad_input", "grad_weight": in files and messages.
const char* pass_name(ProductPass pass);

}  // namespace ciuic::core
