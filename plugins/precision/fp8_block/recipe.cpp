// SPDX-License-Identifier: MIT
#include "recipe.h"

#include "precision/sensitive_modules.h"

namespace ciuic::plugins::fp8_block {
namespace {

using precision::ends_with;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_projection(std::string_view module) {
  return (contains(module, ".self_attn.") || contains(module, ".mlp.")) &&
         (ends_with(module, "_proj") || ends_with(module, "_proj_with_mqa"));
}

ScaleRule rule_of(Config::Scales scales, bool is_rounded_in_the_paper) {
  const bool rounds = scales == Config::Scales::PowerOfTwo ||
                      (scales == Config::Scales::Paper && is_rounded_in_the_paper);
  return rounds ? ScaleRule::PowerOfTwo : ScaleRule::Exact;
}

}  // namespace

Config Config::from(const Options& options) {
  Config config;
  const std::string scales = options.string("scales");
  config.scales = scales == "power_of_two" ? Scales::PowerOfTwo
                  : scales == "exact"      ? Scales::Exact
                                           : Scales::Paper;
  config.stores_inputs_in_fp8 = options.string("stored_inputs") == "e4m3";
  config.stores_attention_output_in_e5m6 = options.string("attention_output") == "e5m6";
  return config;
}

Recipe recipe_of(std::string_view module, const Config& config) {
  Recipe recipe;
  recipe.is_taken = is_projection(module);
  const bool is_output = ends_with(module, ".self_attn.o_proj");
  const bool is_expert = contains(module, ".mlp.experts.");
  const bool is_down = ends_with(module, "down_proj");
  recipe.weight = rule_of(config.scales, false);
  recipe.input = rule_of(config.scales, is_output || (is_expert && !is_down));
  recipe.output_gradient = rule_of(config.scales, is_expert && is_down);
  if (is_output && config.stores_attention_output_in_e5m6) {
    recipe.stored_input = Stored::E5m6;
  } else if (config.stores_inputs_in_fp8) {
    recipe.stored_input = Stored::E4m3;
  }
  return recipe;
}

}  // namespace ciuic::plugins::fp8_block
