// SPDX-License-Identifier: MIT
#pragma once

// DeepSeek-V3 written down plainly in LibTorch operations, so that LibTorch's autograd
// differentiates it: the oracle that every hand-written backward is compared with. Follows
// transformers' modeling_deepseek_v3.py line by line, with one difference: rotary pairs are turned
// as complex numbers where they stand.

#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include "core/model/model_config.h"
#include "core/model/objective.h"

namespace ciuic::core::testing {

using Named = std::map<std::string, at::Tensor>;

class Oracle {
 public:
  /// `parameters` by their names; `biases` by theirs (missing: zeros).
  Oracle(ModelConfig config, Named parameters, Named biases = {});

  at::Tensor rms_norm(const at::Tensor& x, const std::string& name, double epsilon) const;
  at::Tensor attention(const at::Tensor& x_BTD, const std::string& prefix) const;
  at::Tensor swiglu(const at::Tensor& x, const std::string& prefix) const;
  at::Tensor mixture(const at::Tensor& x_ND, const std::string& prefix) const;
  at::Tensor layer(const at::Tensor& x_BTD, int64_t index) const;
  at::Tensor hidden(const at::Tensor& tokens_BT) const;
  at::Tensor logits(const at::Tensor& tokens_BT) const;
  /// Sum over depths of multi-token prediction of the loss sums.
  at::Tensor prediction_loss_sum(const at::Tensor& tokens_BT, const at::Tensor& targets_BT) const;
  /// Sums over tokens of what the routers add to the objective, of the last forward.
  const at::Tensor& balance_sum() const { return balance_sum_; }
  const at::Tensor& z_sum() const { return z_sum_; }
  /// Attention and positions inside documents: starts int64 [B, T] as Rows has them.
  void set_documents(const at::Tensor& starts_BT) { starts_BT_ = starts_BT; }
  void set_objective(const Objective& objective) { objective_ = objective; }
  /// Sum over the tokens that have a target.
  at::Tensor loss_sum(const at::Tensor& logits, const at::Tensor& targets) const;

  /// Experts that `mixture` chooses: int64 [N, K].
  at::Tensor chosen_experts(const at::Tensor& scores_NE, const std::string& prefix) const;

  const at::Tensor& operator[](const std::string& name) const { return parameters_.at(name); }

 private:
  at::Tensor linear(const at::Tensor& x, const std::string& name) const;
  at::Tensor embedding(const at::Tensor& tokens_BT) const;
  const at::Tensor& head() const;
  at::Tensor rotate(const at::Tensor& x_BTHR) const;
  at::Tensor document_starts(const at::Tensor& x_BT) const;
  void add_terms(const at::Tensor& logits_NE, const at::Tensor& scores_NE,
                 const at::Tensor& experts_NK) const;

  ModelConfig config_;
  Named parameters_, biases_;
  at::Tensor starts_BT_;
  Objective objective_;
  mutable int64_t num_sequences_ = 1;
  mutable at::Tensor balance_sum_, z_sum_;
};

/// Copies that record what is done to them.
Named leaves(const Named& values);
at::Tensor leaf(const at::Tensor& value);

/// Gradients of `objective` with respect to `inputs`, zeros for one that it does not depend on.
Named gradients(const at::Tensor& objective, const Named& inputs);

}  // namespace ciuic::core::testing
