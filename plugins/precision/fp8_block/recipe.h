// SPDX-License-Identifier: MIT
//
// DeepSeek-V3's FP8 recipe (arXiv:2412.19437, sec. 3.3) as a table: which modules are multiplied in
// FP8, and how the scales of their operands are rounded. All operands are E4M3.
//
//   linear projections of attention and feed-forward blocks   FP8
//   embedding, head, router, norms, MTP's eh_proj              as the policy bf16 has them
//   inputs of o_proj; of the experts' gate_proj and up_proj;   scales that are powers of two
//   gradients into the experts' down_proj                      ("paper")
#pragma once

#include <string>
#include <string_view>

#include <ciuic/options.hpp>

namespace ciuic::plugins::fp8_block {

constexpr int64_t kBlock = 128;

enum class ScaleRule { Exact, PowerOfTwo };

/// How an input waits between forward and backward: as it is, in E4M3, or in E5M6.
enum class Stored { Exact, E4m3, E5m6 };

struct Config {
  enum class Scales { Paper, Exact, PowerOfTwo } scales = Scales::Paper;
  bool stores_inputs_in_fp8 = false;
  bool stores_attention_output_in_e5m6 = false;

  static Config from(const Options& options);
};

/// Of one module.
struct Recipe {
  bool is_taken = false;
  ScaleRule weight = ScaleRule::Exact;
  ScaleRule input = ScaleRule::Exact;
  ScaleRule output_gradient = ScaleRule::Exact;
  Stored stored_input = Stored::Exact;
};

Recipe recipe_of(std::string_view module, const Config& config);

}  // namespace ciuic::plugins::fp8_block
