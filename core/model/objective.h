// SPDX-License-Identifier: MIT
#pragma once

// What a step minimises besides the language-model loss, and what it came to.
//
// The objective of a step is the sum over tokens of
//   lm_loss + prediction / D * sum_k prediction_loss_k + balance terms + router_z * z_loss
// divided by the step's tokens: a sequence's balance loss weighs as many tokens as the sequence
// has, so equal sequences weigh alike. Sources: DeepSeek-V3, arXiv:2412.19437, equations 17-20 and
// 24-25; DeepSeek-V2, arXiv:2405.04434, equations 23-31; ST-MoE, arXiv:2202.08906, equation 5.

#include <cstdint>

namespace ciuic::core {

/// Factors of the terms; 0 turns one off.
struct Objective {
  /// d(objective) / d(loss of one token), for example loss_scale / tokens_in_global_batch.
  double seed = 1;
  double balance = 0;                // between the experts that a sequence uses (V2: alpha_1)
  double device_balance = 0;         // between groups of experts, V2's alpha_2
  double communication_balance = 0;  // between groups that tokens are sent to, V2's alpha_3
  double router_z = 0;
  double prediction = 0;    // multi-token prediction, lambda
  double router_noise = 0;  // no term: the deviation of what is added to logits (router_noise.h)

  [[nodiscard]] bool has_balance() const {
    return balance != 0 || device_balance != 0 || communication_balance != 0;
  }
};

/// Sums over tokens, in f64, of what the router terms added to the objective (their factors in it).
struct RouterTerms {
  double balance = 0;
  double z = 0;
};

}  // namespace ciuic::core
