// SPDX-License-Identifier: MIT
#include "core/bench/module_flops.h"

#include "core/model/parameter_specs.h"

namespace ciuic::core {
namespace {

constexpr double kForwardAndBackward = 6;  // FLOPs per parameter: 2 forward, 4 backward

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

double uses_per_token(Part part, const ModelConfig& config) {
  switch (part) {
    case Part::Embedding:
      return 0;  // a look-up
    case Part::Experts:
      return static_cast<double>(config.num_experts_per_tok) /
             static_cast<double>(config.n_routed_experts);
    case Part::Loss:
      return static_cast<double>(1 + config.num_nextn_predict_layers);
    default:
      return 1;
  }
}

Part part_of_parameter(std::string_view name) {
  return contains(name, "norm.weight")    ? Part::Norm
         : contains(name, "embed_tokens") ? Part::Embedding
         : contains(name, "lm_head")      ? Part::Loss
         : contains(name, "self_attn.")   ? Part::Attention
         : contains(name, "mlp.experts.") ? Part::Experts
         : contains(name, "mlp.gate.")    ? Part::Router
         : contains(name, "mlp.")         ? Part::DenseFeedForward
                                          : Part::Prediction;
}

std::array<double, kNumParts> module_flops(const ModelConfig& config, int64_t sequence_tokens) {
  std::array<double, kNumParts> flops{};
  for (const ParameterSpec& spec : parameter_specs(config)) {
    const Part part = part_of_parameter(spec.name);
    flops[static_cast<size_t>(part)] += kForwardAndBackward * uses_per_token(part, config) *
                                        static_cast<double>(spec.num_elements());
  }
  // Half of the square of scores: q k^T and p v, 2 FLOPs each, forward, and twice that backward.
  flops[static_cast<size_t>(Part::Attention)] +=
      static_cast<double>(3 * config.num_layers() * sequence_tokens * config.num_attention_heads *
                          (config.qk_head_dim() + config.v_head_dim));
  return flops;
}

}  // namespace ciuic::core
