// SPDX-License-Identifier: MIT
#pragma once

// The trainable parameters of a model: names, shapes and the unit that each belongs to.
//
// A unit is what is bound, run and reduced at once: 0 is the embedding, 1..L are the layers, L+1..L+D
// those for multi-token prediction, the last is the final norm with the head. Names and shapes are
// those of Hugging Face's safetensors files ([out, in]). No LibTorch: estimates, checkpoints and the launcher use this too.

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/expert_share.h"
#include "core/model/model_config.h"

namespace ciuic::core {

enum class Init { Normal, Ones, Zeros };

struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  int64_t unit = 0;
  bool is_expert = false;
  Init init = Init::Normal;
  /// Index of the parameter whose values and gradient this is; -1: its own. A file has it once.
  int64_t tied_to = -1;

  [[nodiscard]] bool is_tied() const { return tied_to >= 0; }
  [[nodiscard]] int64_t num_elements() const;
};

/// All parameters, grouped by unit and within a unit in the order in which forward meets them.
/// A unit's Bindings (gradient.h) come in this order.
/// Of routed experts, those of `share`.
std::vector<ParameterSpec> parameter_specs(const ModelConfig& config,
                                           const ExpertShare& share = {});

/// State that is saved with the parameters but has no gradient:
/// `model.layers.i.mlp.gate.e_score_correction_bias`, fp32 [n_routed_experts], zeros at the start.
/// One for each mixture, in order; none where routing has no such bias (V2).
struct BufferSpec {
  std::string name;
  std::vector<int64_t> shape;
  int64_t unit = 0;
};
std::vector<BufferSpec> buffer_specs(const ModelConfig& config);

inline int64_t num_units(const ModelConfig& config) { return config.num_layers() + 2; }

/// Trainable parameters, buffers left out, a tied one once.
int64_t count_parameters(const ModelConfig& config);
/// Those that one token meets: its experts only, and not the input embedding, which is a look-up.
/// Layers for multi-token prediction and the head's further passes for them are in it.
int64_t count_active_parameters(const ModelConfig& config);
/// Forward and backward: 6 per active parameter, and causal attention (half of the square) over
/// `sequence_tokens`.
double flops_per_token(const ModelConfig& config, int64_t sequence_tokens);

}  // namespace ciuic::core
