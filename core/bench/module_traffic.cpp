// SPDX-License-Identifier: MIT
#include "core/bench/module_traffic.h"

#include <algorithm>

#include "core/bench/module_flops.h"
#include "core/model/parameter_specs.h"

namespace ciuic::core {
namespace {

class Traffic {
 public:
  Traffic(const ModelConfig& config, int64_t tokens, const ElementBytes& bytes)
      : config_(config), tokens_(static_cast<double>(tokens)), bytes_(bytes) {}

  void add(const ParameterSpec& spec) {
    const Part part = part_of_parameter(spec.name);
    add_weight(part, static_cast<double>(spec.num_elements()));
    add_activations(part, spec);
  }
  [[nodiscard]] const std::array<double, kNumParts>& sums() const { return sums_; }

 private:
  double& of(Part part) { return sums_[static_cast<size_t>(part)]; }

  void add_weight(Part part, double elements) {
    of(part) += times_in_use(part) * elements * (2 * bytes_.value + bytes_.gradient);
  }

  /// In a micro-batch: the head for each of its targets, the rest once, if tokens reach it.
  [[nodiscard]] double times_in_use(Part part) const {
    const double uses = uses_per_token(part, config_);
    return part == Part::Loss ? uses : std::min(1.0, tokens_ * uses);
  }

  /// A part's input and output, once for the parameter that every such part has one of.
  void add_activations(Part part, const ParameterSpec& spec) {
    const auto hidden = static_cast<double>(config_.hidden_size);
    const bool is_last =
        spec.name.ends_with("o_proj.weight") ||
        (part == Part::DenseFeedForward && spec.name.ends_with("down_proj.weight"));
    if (part == Part::Norm) {
      pass(part, static_cast<double>(spec.shape[0]), static_cast<double>(spec.shape[0]));
    } else if (part == Part::Embedding) {
      add_look_up(static_cast<double>(spec.shape[0]));
    } else if (is_last) {
      pass(part, hidden, hidden);
    } else if (part == Part::Router && spec.shape.size() == 2) {
      pass(part, hidden, static_cast<double>(config_.n_routed_experts));
      pass(Part::Experts, hidden, hidden);
    } else if (part == Part::Loss) {
      pass(part, uses_per_token(part, config_) * hidden, 0);
    } else if (part == Part::Prediction) {
      pass(part, 2 * hidden, hidden);
    }
  }

  /// Rows are read in forward, and their gradients written in backward, once each.
  void add_look_up(double vocabulary) {
    const auto hidden = static_cast<double>(config_.hidden_size);
    of(Part::Embedding) +=
        std::min(tokens_, vocabulary) * hidden * (bytes_.value + bytes_.gradient) +
        tokens_ * hidden * 2 * bytes_.activation;
  }

  /// Elements of a token; the input is read once more in backward, and its gradient written.
  void pass(Part part, double in, double out) {
    of(part) += tokens_ * bytes_.activation * (3 * in + 2 * out);
  }

  const ModelConfig& config_;
  const double tokens_;
  const ElementBytes bytes_;
  std::array<double, kNumParts> sums_{};
};

}  // namespace

std::array<double, kNumParts> least_traffic(const ModelConfig& config, int64_t tokens,
                                            const ElementBytes& bytes) {
  Traffic traffic(config, tokens, bytes);
  for (const ParameterSpec& spec : parameter_specs(config)) {
    traffic.add(spec);
  }
  return traffic.sums();
}

}  // namespace ciuic::core
