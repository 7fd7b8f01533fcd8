// SPDX-License-Identifier: MIT
#pragma once

// A DeepSeek-V2 or V3 model as a row of units with explicit forward and backward.
//
// The trainer walks the units: bind, forward, drop; then in reverse bind, backward, reduce, drop.
// Parameters arrive with each call (gradient.h), what backward needs waits in a tape that the
// caller keeps, and there is no autograd: every call runs under c10::InferenceMode, which the
// functions here switch on themselves.
//
//   unit 0          embed             -> hidden [B, T, D]
//   unit 1..L       forward/backward     hidden -> hidden
//   unit L+1..L+D   predict*             hidden, embedding further on -> hidden (multi-token
//                                        prediction)
//   unit L+D+1      head_loss*           hidden -> loss (final norm, head, cross entropy;
//                                        never all logits at once)
//
// Numerics follow transformers' DeepseekV2ForCausalLM and DeepseekV3ForCausalLM; see
// docs/numerics.md.
// Threads: one call at a time per model. Same inputs and thread count give the same bits.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/decoder_layer.h"
#include "core/model/gradient.h"
#include "core/model/head.h"
#include "core/model/latent_cache.h"
#include "core/model/model_config.h"
#include "core/model/objective.h"
#include "core/model/parameter_specs.h"
#include "core/model/prediction_layer.h"
#include "core/model/rotary.h"
#include "core/model/rows.h"

namespace ciuic::core {

/// Whether a forward counts the loads of the experts and the terms of the router (Train) or leaves
/// them alone (Evaluate).
enum class Mode { Train, Evaluate };

/// What all units share while one micro-batch passes through them.
struct Pass {
  Rows rows;
  Mode mode = Mode::Evaluate;
  Objective objective;
  Recompute recompute = Recompute::None;
  uint64_t seed = 0;  // of what is drawn at random
};

class Model final {
 public:
  /// `activation`: dtype of hidden states and of the bound matrices; f32, bf16, f16 or f64. Norm weights
  /// and router weights may be bound in f32 beside bf16 or f16. Throws: InvalidConfig, with all of
  /// problems(config).
  /// `share`: the routed experts that this process has; with more than one rank set_expert_exchange
  /// comes before the first pass.
  Model(ModelConfig config, at::ScalarType activation, at::Device device,
        const ExpertShare& share = {});
  ~Model();

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] int64_t num_units() const { return config_.num_layers() + 2; }
  [[nodiscard]] int64_t last_layer_unit() const { return config_.num_hidden_layers; }
  [[nodiscard]] int64_t num_depths() const { return config_.num_nextn_predict_layers; }
  /// depth: from 1.
  [[nodiscard]] int64_t depth_unit(int64_t depth) const { return last_layer_unit() + depth; }
  [[nodiscard]] int64_t head_unit() const { return config_.num_layers() + 1; }
  [[nodiscard]] std::span<const ParameterSpec> parameters() const { return parameters_; }
  [[nodiscard]] std::span<const ParameterSpec> unit_parameters(int64_t unit) const;
  /// Must outlive this object.
  void set_expert_exchange(const ExpertExchange* exchange) { exchange_ = exchange; }
  /// For whoever makes bindings: what the precision policy takes of each parameter's module, in the
  /// order of parameters(). Empty: nothing.
  void set_hooks(std::vector<const ModuleHook*> hooks) { hooks_ = std::move(hooks); }
  [[nodiscard]] const ModuleHook* hook(size_t parameter) const {
    return hooks_.empty() ? nullptr : hooks_.at(parameter);
  }

  /// Unit 0. tokens: int64 [B, T] -> [B, T, D]. Throws: InvalidArgument for a token outside the
  /// vocabulary.
  at::Tensor embed(Bindings unit, const at::Tensor& tokens_BT);
  /// Adds the rows of `dhidden`, times embedding_gradient_scale, in the order of the tokens.
  void embed_backward(Bindings unit, const at::Tensor& tokens_BT, const at::Tensor& dhidden_BTD);

  /// A factor on the embedding's gradient that comes through the look-up, not through a tied head;
  /// 0: none comes. The known remedy where these gradients start an explosion (GLM-130B,
  /// arXiv:2210.02414, section 3.3, "embedding gradient shrink").
  void set_embedding_gradient_scale(double scale) { embedding_gradient_scale_ = scale; }

  /// Units 1..L. `tape` keeps what backward needs; nullptr when there will be none.
  at::Tensor forward(int64_t unit, Bindings bindings, const at::Tensor& hidden_BTD,
                     const Pass& pass, LayerTape* tape);
  /// Units 1..L for tokens that follow those in `cache`: hidden [1, N, D], between cache.begin(N) and
  /// cache.commit(). Equal to forward over all tokens, up to the order of sums.
  at::Tensor extend(int64_t unit, Bindings bindings, const at::Tensor& hidden_BTD,
                    const LatentCache& cache);
  /// An empty cache that fits this model.
  [[nodiscard]] LatentCache new_cache() const { return {config_, activation_, device_}; }
  /// Returns the gradient of the unit's input, accumulates those of its parameters and empties the
  /// tape on the way.
  at::Tensor backward(int64_t unit, Bindings bindings, const at::Tensor& dhidden_BTD,
                      const Pass& pass, LayerTape& tape);

  /// Where experts are shared out over ranks, a rank without tokens in a micro-batch works for the
  /// others: in units of which serves() is true, in forward and, with the tape, in backward. That
  /// writes every gradient of the unit.
  [[nodiscard]] bool serves(int64_t unit) const;
  void serve(int64_t unit, Bindings bindings, Recompute recompute, LayerTape* tape);
  void serve_backward(int64_t unit, Bindings bindings, LayerTape& tape);

  /// Units L+1..L+D, by depth. `embedded`: of the tokens `depth` places further on (shifted()).
  PredictionLayer::Output predict(int64_t depth, Bindings bindings, const at::Tensor& embedded_BTD,
                                  const at::Tensor& hidden_BTD, const Pass& pass,
                                  PredictionTape* tape);
  PredictionLayer::Gradient predict_backward(int64_t depth, Bindings bindings,
                                             const at::Tensor& dnormed_BTD,
                                             const at::Tensor& dhidden_BTD, const Pass& pass,
                                             PredictionTape& tape);

  /// The last unit. targets: int64 [B, T], kIgnoredTarget for positions without one. `seed` is
  /// d(objective)/d(loss of one token), for example loss_scale / tokens_in_global_batch.
  HeadGradient head_loss_and_backward(Bindings unit, const at::Tensor& hidden_BTD,
                                      const at::Tensor& targets_BT, double seed);
  /// The same on what PredictionLayer normed; adds to the head's gradient, so that
  /// head_loss_and_backward comes first.
  HeadGradient predicted_loss_and_backward(Bindings unit, const at::Tensor& normed_BTD,
                                           const at::Tensor& targets_BT, double seed);
  HeadLoss predicted_loss(Bindings unit, const at::Tensor& normed_BTD,
                          const at::Tensor& targets_BT);
  HeadLoss head_loss(Bindings unit, const at::Tensor& hidden_BTD, const at::Tensor& targets_BT);
  /// [B, T, V] in the activation dtype. Pass a slice of hidden for the last position only.
  at::Tensor head_logits(Bindings unit, const at::Tensor& hidden_BTD);

  /// Tokens sent to each expert by Mode::Train forwards since the last reset: int64
  /// [num_moe_layers, E], on the CPU, contiguous. Sum it over the ranks in place, then call
  /// update_expert_bias.
  [[nodiscard]] at::Tensor expert_loads() const { return expert_loads_; }
  void reset_expert_loads();
  /// What Mode::Train forwards added to the objective since the last call.
  RouterTerms take_router_terms() { return std::exchange(terms_, {}); }
  /// b += rate * sign(mean(load) - load), once per optimizer step, with loads summed over all
  /// ranks; nothing where routing has no bias. Source: DeepSeek-V3, arXiv:2412.19437, section 2.1.2.
  void update_expert_bias(const at::Tensor& loads_ME, double rate);

  /// The router biases by their names in a file, f32 [E] each: views, so a load copies into them.
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> expert_biases() const;

 private:
  void check_bindings(int64_t unit, Bindings bindings) const;
  const Rotary& rotary_for(int64_t num_positions);
  /// Of layer `layer`; `counts`: loads and terms.
  RouterPass router_pass(int64_t layer, const Pass& pass, bool counts);

  [[nodiscard]] const DecoderLayer& layer_of(int64_t unit, Bindings& bindings) const;

  ModelConfig config_;
  at::ScalarType activation_;
  at::Device device_;
  std::vector<ParameterSpec> parameters_;
  std::vector<const ModuleHook*> hooks_;                  // by parameter
  std::vector<std::pair<int64_t, int64_t>> unit_ranges_;  // [first, last) into parameters_
  std::vector<DecoderLayer> layers_;
  std::vector<PredictionLayer> predictions_;
  Head head_;
  Rotary rotary_;
  double embedding_gradient_scale_ = 1;
  at::Tensor expert_bias_;   // f32 [num_moe_layers, E], on the device
  at::Tensor expert_loads_;  // int64 [num_moe_layers, E], on the CPU
  RouterTerms terms_;
  const ExpertExchange* exchange_ = nullptr;
};

}  // namespace ciuic::core
