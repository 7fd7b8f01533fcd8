// SPDX-License-Identifier: MIT
//
// Optimizer "muon": MomentUm Orthogonalised by Newton-schulz (Keller Jordan, 2024), with decoupled
// decay and the update scale of Moonlight (arXiv:2502.16982, equation 4), for matrices; AdamW for
// the rest. Of a matrix of A x B:
//   m = lerp(m, g, 1 - momentum);  u = lerp(g, m, momentum) (Nesterov) or m
//   p = p (1 - lr wd) - lr 0.2 sqrt(max(A, B)) orthogonal(u)
// The scale makes the root mean square of an update 0.2, which is AdamW's: learning rate and decay
// are those of AdamW, for all parameters.
//
// A matrix is updated whole: the rule's granule is all of it, and a sharding that hands out a part
// is refused. Products are the host's, so their last bits depend on its number of threads.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <ciuic/optimizer.hpp>

#include "matrix_choice.h"
#include "optimizer/adamw_rule.h"
#include "optimizer/muon_rule.h"
#include "optimizer/update_pass.h"
#include "optimizer/weight_decay.h"
#include "orthogonal.h"

namespace ciuic::plugins::muon {
namespace {

using optimizer::Block;
using Updates = std::vector<const ciuic_update*>;

class Muon final : public Optimizer {
 public:
  static constexpr const char* name = "muon";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "Orthogonalised momentum for matrices, AdamW for the rest";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  static constexpr uint32_t kShared = CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL;
  inline static const auto options = option_table(
      option_f64("momentum", 0.95, 0.0, 1.0, "Decay of a matrix's mean of gradients; below 1",
                 kShared),
      option_bool("nesterov", true, "Whether a matrix's update looks one gradient ahead", kShared),
      option_strings("adamw",
                     "Matrices that AdamW updates: patterns with * and ? over full names; by "
                     "default \"*embed*\", \"*head*\" and \"*mlp.gate.weight\"",
                     kShared | CIUIC_OPTION_PARAMETER_NAMES),
      option_f64("beta1", 0.9, 0.0, 1.0, "AdamW: decay of the mean of gradients; below 1", kShared),
      option_f64("beta2", 0.95, 0.0, 1.0, "AdamW: decay of the mean of squared gradients; below 1",
                 kShared),
      option_f64("epsilon", 1e-8, 0.0, 1.0, "AdamW: added to the root of the second moment",
                 kShared),
      option_f64("weight_decay", 0.1, 0.0, 100.0,
                 "Decoupled weight decay: a step multiplies the values by 1 - lr * weight_decay",
                 kShared),
      optimizer::WeightDecay::no_decay_option(kShared));

  explicit Muon(const Context& context)
      : Optimizer(context),
        momentum_(context.options().f64("momentum")),
        is_nesterov_(context.options().boolean("nesterov")),
        choice_(context.options().strings("adamw")),
        adamw_{context.options().f64("beta1"), context.options().f64("beta2"),
               context.options().f64("epsilon")},
        weight_decay_(context.options()),
        matrix_pass_(host(), name, {1}),
        adamw_pass_(host(), name, {2}),
        products_(host().find_service<ciuic_tensor_service>("ciuic.tensor")) {
    validate(context);
  }

  static void validate(const Context& context) {
    for (const char* key : {"momentum", "beta1", "beta2"}) {
      if (const double value = context.options().f64(key); !(value < 1)) {
        throw Error(CIUIC_INVALID,
                    std::string(key) + " = " + std::to_string(value) +
                        " keeps the first value of its moment for ever; use less than 1");
      }
    }
  }

  [[nodiscard]] int64_t granule(const ciuic_param& param) const override {
    return choice_.is_matrix(param) ? std::max<int64_t>(1, param.shape[0] * param.shape[1]) : 1;
  }
  [[nodiscard]] const std::vector<ciuic_state_spec>& state_spec(
      const ciuic_param& param) const override {
    return choice_.is_matrix(param) ? matrix_specs_ : adamw_specs_;
  }

  void update(ArrayView<ciuic_update> updates, const ciuic_stream* stream) const override {
    Updates matrices;
    Updates others;
    for (const ciuic_update& u : updates) {
      if (!choice_.is_matrix(*u.param)) {
        others.push_back(&u);
      } else if (u.num_elements > 0) {
        require_whole(u);
        matrices.push_back(&u);
      }
    }
    update_adamw(others, stream);
    if (!matrices.empty()) {
      update_matrices(matrices, stream);
    }
  }

 private:
  static void require_whole(const ciuic_update& u) {
    const int64_t all = u.param->shape[0] * u.param->shape[1];
    if (u.begin != 0 || u.num_elements != all) {
      throw Error(CIUIC_INVALID, "optimizer muon: " + std::string(to_view(u.param->name)) +
                                     ": got elements " + std::to_string(u.begin) + " to " +
                                     std::to_string(u.begin + u.num_elements) + " of " +
                                     std::to_string(all) +
                                     ", expected the whole matrix: its granule is all of it");
    }
  }

  void update_adamw(const Updates& updates, const ciuic_stream* stream) const {
    adamw_pass_.run_with(
        updates, stream,
        [&](const ciuic_update& u) { return adamw_scalars(adamw_, u, weight_decay_.of(u)); },
        optimizer::adamw_update);
  }

  void update_matrices(const Updates& updates, const ciuic_stream* stream) const {
    if (products_ == nullptr) {
      throw Error(CIUIC_PRECONDITION,
                  "optimizer muon: the host offers no service ciuic.tensor for its products");
    }
    int64_t largest = 0;
    int64_t side = 0;
    for (const ciuic_update* u : updates) {
      largest = std::max(largest, u->num_elements);
      side = std::max(side, std::min(u->param->shape[0], u->param->shape[1]));
    }
    Orthogonaliser orthogonaliser(host(), *products_, largest, side);
    for (const ciuic_update* u : updates) {
      follow_momentum(*u, orthogonaliser.input(), stream);
      step(*u, orthogonaliser.run(u->param->shape[0], u->param->shape[1]), stream);
    }
  }

  /// The momentum takes in the gradient; `direction` gets what is to be orthogonalised.
  void follow_momentum(const ciuic_update& u, float* direction, const ciuic_stream* stream) const {
    const optimizer::MuonMomentum s{static_cast<float>(u.grad_scale), static_cast<float>(momentum_),
                                    static_cast<float>(1 - momentum_), is_nesterov_};
    matrix_pass_.run({&u}, stream, [&](size_t, const Block& block) {
      muon_follow(s, block, direction + block.begin);
    });
  }

  void step(const ciuic_update& u, const float* orthogonal, const ciuic_stream* stream) const {
    const auto longer = static_cast<double>(std::max(u.param->shape[0], u.param->shape[1]));
    const optimizer::MuonStep s{static_cast<float>(1 - u.lr * weight_decay_.of(u)),
                                static_cast<float>(-u.lr * 0.2 * std::sqrt(longer))};
    matrix_pass_.run({&u}, stream, [&](size_t, const Block& block) {
      muon_step(s, block, orthogonal + block.begin);
    });
  }

  double momentum_;
  bool is_nesterov_;
  MatrixChoice choice_;
  optimizer::AdamWOptions adamw_;
  optimizer::WeightDecay weight_decay_;
  optimizer::UpdatePass matrix_pass_, adamw_pass_;
  const ciuic_tensor_service* products_;
  std::vector<ciuic_state_spec> matrix_specs_{moment_spec("momentum_buffer", kF32)};
  std::vector<ciuic_state_spec> adamw_specs_{moment_spec("exp_avg", kF32),
                                             moment_spec("exp_avg_sq", kF32)};
};

}  // namespace
}  // namespace ciuic::plugins::muon

CIUIC_PLUGINS(ciuic::plugins::muon::Muon)
