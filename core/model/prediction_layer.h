// SPDX-License-Identifier: MIT
#pragma once

// One depth of multi-token prediction: from the hidden state h of token i and the embedding e of
// token i + k to the hidden state that predicts token i + k + 1.
//
//   h'  = layer(eh_proj([enorm(e) ; hnorm(h)]));   what the shared head gets is shared_head.norm(h')
//
// The embedding's half comes first, as in the published weights; h is the state before the final
// norm. Source: DeepSeek-V3, arXiv:2412.19437, section 2.2, equations 21-23.

#include <ATen/core/Tensor.h>

#include "core/model/decoder_layer.h"

namespace ciuic::core {

struct PredictionTape {
  at::Tensor embedded_ND, hidden_ND, out_ND;
  LayerTape layer;
};

class PredictionLayer final {
 public:
  /// `layer`: its number in the file, num_hidden_layers or more.
  PredictionLayer(const ModelConfig& config, int64_t layer, const ExpertShare& share = {});

  struct Output {
    at::Tensor hidden_BTD;  // for the next depth
    at::Tensor normed_BTD;  // for the head
  };
  /// `weights`: enorm, hnorm, eh_proj, those of DecoderLayer, shared_head.norm.
  Output forward(Bindings weights, const at::Tensor& embedded_BTD, const at::Tensor& hidden_BTD,
                 const LayerContext& context, const RouterPass& router, Recompute recompute,
                 PredictionTape* tape) const;

  struct Gradient {
    at::Tensor dembedded_BTD, dhidden_BTD;
  };
  /// `dhidden`: from the next depth; undefined: there is none. Empties the tape.
  Gradient backward(Bindings weights, const at::Tensor& dnormed_BTD, const at::Tensor& dhidden_BTD,
                    const LayerContext& context, const RouterPass& router,
                    PredictionTape& tape) const;

  /// The layer within, and its part of `weights`.
  [[nodiscard]] const DecoderLayer& layer() const { return layer_; }
  static Bindings layer_weights(Bindings weights);

 private:
  double epsilon_;
  DecoderLayer layer_;
};

/// Tokens (or targets) `depth` places further on; `fill` where a row ends.
at::Tensor shifted(const at::Tensor& tokens_BT, int64_t depth, int64_t fill);

/// The targets of `depth`: those of the token `depth` places further on, none beyond the span.
at::Tensor prediction_targets(const at::Tensor& targets_BT, const Rows& rows, int64_t depth);

}  // namespace ciuic::core
