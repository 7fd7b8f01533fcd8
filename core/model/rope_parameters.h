// SPDX-License-Identifier: MIT
#pragma once

// How angles of the rotary position embedding grow with position: plain, or stretched by YaRN.
//
// Field for field config.json's `rope_parameters` (transformers >= 5) or `rope_scaling` (before).
// No LibTorch. Sources: YaRN, arXiv:2309.00071, sections 3.2 to 3.4; DeepSeek-V3,
// arXiv:2412.19437, section 4.3; the rounding is that of transformers' rope initialisation.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace ciuic::core {

struct RopeParameters {
  std::string rope_type = "default";  // or "yarn"
  double factor = 1.0;                // how many times the original length
  /// Nothing: the model's max_position_embeddings.
  std::optional<int64_t> original_max_position_embeddings;
  double beta_fast = 32.0;  // turns over the original length above which a pair stays as it is
  double beta_slow = 1.0;   // and below which it is slowed by the whole factor
  std::optional<double> mscale, mscale_all_dim;
  std::optional<double> attention_factor;  // nothing: from the mscales
  bool truncate = true;                    // the two bounds are whole pairs

  [[nodiscard]] bool is_yarn() const { return rope_type == "yarn"; }
  friend bool operator==(const RopeParameters&, const RopeParameters&) = default;
};

/// Reads a `rope_parameters` or `rope_scaling` table into `rope`, and its `rope_theta`, if it has
/// one, into `theta`. Returns what does not fit, each as "key: got ..., expected ..."; unknown keys
/// are added to `unknown`.
std::vector<std::string> read_rope(const nlohmann::json& table, std::string_view key,
                                   RopeParameters& rope, double& theta,
                                   std::vector<std::string>& unknown);

/// The keys that read_rope knows.
std::span<const std::string_view> rope_keys();

/// The table as transformers writes it.
nlohmann::json to_json(const RopeParameters& rope, double theta);

/// 0.1 a ln(factor) + 1; 1 for factors up to 1.
double yarn_mscale(double factor, double a);

/// f32 [rope_dim / 2], the turn of each pair per position.
/// `max_position_embeddings` stands in for a missing original length.
std::vector<float> inverse_frequencies(const RopeParameters& rope, int64_t rope_dim, double theta,
                                       int64_t max_position_embeddings);

/// Factor on cosines and sines: 1 for plain angles and for DeepSeek's models.
double rotary_factor(const RopeParameters& rope);

/// Factor on the softmax scale, m(mscale_all_dim)^2; 1 for plain angles.
double softmax_factor(const RopeParameters& rope);

}  // namespace ciuic::core
