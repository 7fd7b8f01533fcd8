// SPDX-License-Identifier: MIT
//
// Optimizer "signum": signSGD with momentum (Bernstein et al., arXiv:1802.04434, algorithm 2):
//
//   m = beta m + (1 - beta) g        w = w - lr (sign(m) + decay w)
//
// The rule is element-wise, so shards may be cut anywhere and updated by any thread.
#include <cmath>
#include <cstdint>
#include <vector>

#include <ciuic/optimizer.hpp>

namespace {

class Signum final : public ciuic::Optimizer {
 public:
  static constexpr const char* name = "signum";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "the sign of the momentum as the step";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  static constexpr uint32_t kNumbers = CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL;
  inline static const auto options = ciuic::option_table(
      ciuic::option_f64("beta", 0.9, 0.0, 1.0, "Decay of the momentum", kNumbers),
      ciuic::option_f64("weight_decay", 0.0, 0.0, 10.0, "Decoupled decay", kNumbers));

  explicit Signum(const ciuic::Context& c)
      : Optimizer(c), beta_(c.options().f64("beta")), decay_(c.options().f64("weight_decay")) {}

  const std::vector<ciuic_state_spec>& state_spec(const ciuic_param&) const override {
    return specs_;
  }

  void update(ciuic::ArrayView<ciuic_update> updates, const ciuic_stream*) const override {
    for (const ciuic_update& u : updates) {
      update_one(u);
    }
  }

 private:
  void update_one(const ciuic_update& u) const {
    const auto* grad = ciuic::elements<float>(*u.grad);
    auto* momentum = ciuic::elements<float>(*u.state[0]);
    auto* weight = ciuic::elements<float>(u.master != nullptr ? *u.master : *u.value);
    const double decay = u.lr * decay_ * u.weight_decay;
    for (int64_t i = 0; i < u.num_elements; ++i) {
      const double g = grad[i] * u.grad_scale;
      const auto m = static_cast<float>(beta_ * momentum[i] + (1 - beta_) * g);
      momentum[i] = m;
      const double sign = m > 0 ? 1 : m < 0 ? -1 : m;  // of NaN: NaN, which the host counts
      weight[i] = static_cast<float>(weight[i] - u.lr * sign - decay * weight[i]);
    }
    if (u.master != nullptr && u.value != nullptr) {  // the low-precision copy: the host casts
      const auto& tensor = host().service<ciuic_tensor_service>("ciuic.tensor");
      host().check(tensor.copy(tensor.ctx, u.master, u.value, nullptr));
    }
  }

  double beta_;
  double decay_;
  std::vector<ciuic_state_spec> specs_{ciuic::moment_spec("momentum", ciuic::kF32)};
};

}  // namespace

CIUIC_PLUGINS(Signum)
