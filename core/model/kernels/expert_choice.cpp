// SPDX-License-Identifier: MIT
// The router's rule as LibTorch operations. A stable sort stands in for topk, whose order among
// equals is open.
#include "core/model/kernels/expert_choice.h"

#include <limits>

#include <ATen/ops/gather.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

namespace ciuic::core::kernels::reference {
namespace {

at::Tensor largest(const at::Tensor& values, int64_t count) {
  return std::get<1>(at::sort(values, /*stable=*/true, /*dim=*/-1, /*descending=*/true))
      .narrow(-1, 0, count);
}

// 1 / (sum of the chosen scores), or 1 where scores are used as they are.
at::Tensor inverse_sum(const RouterRule& rule, const at::Tensor& scores_NK) {
  return rule.normalizes ? scores_NK.sum({1}, true).add(1e-20).reciprocal()
                         : at::ones_like(scores_NK.narrow(1, 0, 1));
}

}  // namespace

Routing choose_experts(const RouterRule& rule, const at::Tensor& logits_NE,
                       const at::Tensor& bias_E, bool keeps_scores) {
  const int64_t tokens = logits_NE.size(0);
  const at::Tensor scores = rule.is_softmax ? logits_NE.softmax(1) : logits_NE.sigmoid();
  at::Tensor choice = scores.add(bias_E);
  if (rule.limits_groups) {
    const at::Tensor grouped = choice.view({tokens, rule.num_groups, -1});
    const int64_t judges = rule.judges_groups_by_two ? 2 : 1;
    const at::Tensor group_scores = grouped.gather(2, largest(grouped, judges)).sum({2});
    at::Tensor dropped = at::ones_like(group_scores, group_scores.options().dtype(at::kBool));
    dropped = dropped.scatter(1, largest(group_scores, rule.num_kept_groups), 0);
    choice = grouped.masked_fill(dropped.unsqueeze(2), -std::numeric_limits<double>::infinity())
                 .view_as(choice);
  }
  const at::Tensor experts = largest(choice, rule.num_chosen).contiguous();
  const at::Tensor chosen = scores.gather(1, experts);
  const at::Tensor weights = chosen.mul(inverse_sum(rule, chosen)).mul(rule.scaling);
  return {experts.to(at::kInt), chosen, weights, keeps_scores ? scores : at::Tensor(), {}, {}};
}

at::Tensor choose_experts_backward(const RouterRule& rule, const Routing& routing,
                                   const at::Tensor& dweights_NK) {
  const at::Tensor& s = routing.scores_NK;
  at::Tensor ds = dweights_NK.mul(rule.scaling);
  if (rule.normalizes) {
    const at::Tensor inverse = inverse_sum(rule, s);
    ds = ds.sub(ds.mul(s).mul(inverse).sum({1}, true)).mul(inverse);
  }
  const at::Tensor experts = routing.experts_NK.to(at::kLong);
  const at::Tensor dlogits = at::zeros({s.size(0), rule.num_experts}, s.options());
  if (rule.is_softmax) {
    const at::Tensor dscores = dlogits.scatter(1, experts, ds);
    return routing.scores_NE.mul(dscores.sub(ds.mul(s).sum({1}, true)));
  }
  return dlogits.scatter(1, experts, ds.mul(s).mul(s.mul(-1).add(1)));
}

}  // namespace ciuic::core::kernels::reference
