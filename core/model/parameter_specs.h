// SPDX-License-Identifier: MIT
#pragma once

// The trainable parameters of a model: names, shapes and the unit that each belongs to.
//
// A unit is what is bound, run and reduced at once: 0 is the embedding, 1..L are the layers, L+1 is
// the final norm with the head. Names and shapes are those of Hugging Face's safetensors files
// ([out, in], no biases). No LibTorch: estimates, checkpoints and the launcher use this too.

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/model_config.h"

namespace ciuic::core {

enum class Init { Normal, Ones };

struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  int64_t unit = 0;
  bool is_expert = false;
  Init init = Init::Normal;

  [[nodiscard]] int64_t num_elements() const;
};

/// All parameters, grouped by unit and within a unit in the order in which forward meets them.
/// A unit's Bindings (gradient.h) come in this order.
std::vector<ParameterSpec> parameter_specs(const ModelConfig& config);

/// State that is saved with the parameters but has no gradient:
/// `model.layers.i.mlp.gate.e_score_correction_bias`, fp32 [n_routed_experts], zeros at the start.
struct BufferSpec {
  std::string name;
  std::vector<int64_t> shape;
  int64_t unit = 0;
};
std::vector<BufferSpec> buffer_specs(const ModelConfig& config);

inline int64_t num_units(const ModelConfig& config) { return config.num_hidden_layers + 2; }

/// Trainable parameters, buffers left out.
int64_t count_parameters(const ModelConfig& config);
/// Those that one token meets: its experts only, and not the input embedding, which is a look-up.
int64_t count_active_parameters(const ModelConfig& config);
/// Forward and backward: 6 per active parameter, and causal attention (half of the square) over
/// `sequence_tokens`.
double flops_per_token(const ModelConfig& config, int64_t sequence_tokens);

}  // namespace ciuic::core
