// SPDX-License-Identifier: MIT
#include "core/model/balance.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>

namespace ciuic::core {
namespace {

// s': scores as shares of a token's sum. Softmax scores are that already.
at::Tensor shares_of(const RouterRule& rule, const at::Tensor& scores_NE) {
  return rule.is_softmax ? scores_NE : scores_NE.div(scores_NE.sum({1}, /*keepdim=*/true));
}

// [N, E]: 1 for the K experts that count as a token's.
at::Tensor counted(const RouterRule& rule, const at::Tensor& scores_NE,
                   const at::Tensor& experts_NK) {
  const at::Tensor experts = rule.counts_best_scores
                                 ? std::get<1>(scores_NE.topk(rule.num_chosen, 1))
                                 : experts_NK.to(at::kLong);
  return at::zeros_like(scores_NE).scatter_(1, experts, 1);
}

at::Tensor by_group(const RouterRule& rule, const at::Tensor& x_E) {
  return x_E.unflatten(-1, {rule.num_groups, rule.num_experts / rule.num_groups});
}
at::Tensor spread_over_group(const RouterRule& rule, const at::Tensor& x_BG) {
  return x_BG.repeat_interleave(rule.num_experts / rule.num_groups, -1);
}

}  // namespace

Balance balance_of(const RouterRule& rule, const Objective& objective, const at::Tensor& scores_NE,
                   const at::Tensor& experts_NK, int64_t num_sequences) {
  const int64_t tokens = scores_NE.size(0) / num_sequences;
  const auto by_sequence = [&](const at::Tensor& x) {
    return x.unflatten(0, {num_sequences, tokens});
  };
  const auto share = [&](int64_t of, int64_t among) {
    return static_cast<double>(among) / static_cast<double>(of * tokens);
  };
  const at::Tensor hits_BTE = by_sequence(counted(rule, scores_NE, experts_NK));
  const at::Tensor f_BE = hits_BTE.sum({1}).mul(share(rule.num_chosen, rule.num_experts));
  const at::Tensor p_BE = by_sequence(shares_of(rule, scores_NE)).mean({1});

  at::Tensor coefficients = f_BE.mul(objective.balance);
  if (objective.device_balance != 0) {
    const at::Tensor f_BG = by_group(rule, f_BE).mean({2});
    coefficients.add_(spread_over_group(rule, f_BG), objective.device_balance);
  }
  if (objective.communication_balance != 0) {
    const at::Tensor sent_BTG = by_group(rule, hits_BTE).amax({3});
    const at::Tensor f_BG = sent_BTG.sum({1}).mul(share(rule.num_kept_groups, rule.num_groups));
    coefficients.add_(spread_over_group(rule, f_BG), objective.communication_balance);
  }
  const double sum = coefficients.mul(p_BE).sum(at::kDouble).item<double>();
  return {sum * static_cast<double>(tokens), coefficients};
}

at::Tensor balance_backward(const RouterRule& rule, const at::Tensor& scores_NE,
                            const at::Tensor& coefficients_BE) {
  const int64_t tokens = scores_NE.size(0) / coefficients_BE.size(0);
  const at::Tensor c_NE = coefficients_BE.repeat_interleave(tokens, 0);
  const at::Tensor shares = shares_of(rule, scores_NE);
  const at::Tensor centred = c_NE.sub(c_NE.mul(shares).sum({1}, /*keepdim=*/true));
  // Softmax: ds'/dlogits = s' (1 - s'). Sigmoid: by way of s = s' S, ds/dlogits = s (1 - s).
  return rule.is_softmax ? shares.mul(centred) : shares.mul(centred).mul(scores_NE.neg().add(1));
}

}  // namespace ciuic::core
