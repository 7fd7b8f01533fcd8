// SPDX-License-Identifier: MIT
//
// A model with its weights in this process, for evaluation and generation: no ranks, no sharding.
// The weights come from a checkpoint, a run's folder or a Hugging Face folder.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/plugin/archive_opener.h"
#include "core/plugin/precision.h"
#include "core/train/policy_gemm.h"

namespace ciuic::core {

class LoadedModel {
 public:
  struct Types {
    at::ScalarType activation = at::kFloat;
    /// The dtype of a parameter's value, by name.
    std::function<at::ScalarType(const std::string& parameter)> value = [](const std::string&) {
      return at::kFloat;
    };
    /// Whose products the layers use where it takes them; nullptr: nobody's.
    std::shared_ptr<const PrecisionPlugin> precision;
  };

  /// `path`: a run's folder, a checkpoint or a Hugging Face folder. Throws Failure (Storage).
  LoadedModel(const std::string& path, const ArchiveOpener& opener, const Types& types,
              bool with_gradients);

  [[nodiscard]] const ModelConfig& config() const { return model_->config(); }
  [[nodiscard]] const std::string& source() const { return source_; }
  /// What a person should know about the folder, a line each.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  /// tokens int64 [B, T] -> logits [B, T, V], or of the last position only [B, 1, V]. Nothing is
  /// kept.
  at::Tensor logits(const at::Tensor& tokens_BT, bool last_only);

  /// The experts that each token chooses, best first: int32 [mixtures, B * T, K], mixtures in the
  /// order of their layers. A forward of its own.
  at::Tensor chosen_experts(const at::Tensor& tokens_BT);
  /// An empty cache for one sequence.
  [[nodiscard]] LatentCache new_cache() const { return model_->new_cache(); }
  /// The logits [V] after the last of these tokens, which follow those in `cache` and are in it
  /// then. Throws: Error (INVALID) beyond max_position_embeddings.
  std::vector<float> next_logits(std::span<const int64_t> tokens, LatentCache& cache);

  struct Loss {
    double sum = 0;
    int64_t tokens = 0;
    [[nodiscard]] double mean() const { return sum / static_cast<double>(tokens); }
  };
  /// `document_starts`: as in a MicroBatch; undefined: each row is one sequence.
  Loss loss(const at::Tensor& tokens_BT, const at::Tensor& targets_BT,
            const at::Tensor& document_starts_BT = {});
  /// As loss; adds seed * d(loss sum) to gradients().
  Loss loss_and_gradients(const at::Tensor& tokens_BT, const at::Tensor& targets_BT, double seed);

  /// (name, fp32 gradient) of every trainable parameter.
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> gradients() const;

 private:
  [[nodiscard]] Bindings bindings(int64_t unit) const;
  /// By its number among parameters().
  [[nodiscard]] const Bound& parameter(int64_t index) const;
  at::Tensor hidden(const at::Tensor& tokens_BT, const Pass& pass, std::vector<LayerTape>* tapes);

  std::string source_;
  std::vector<std::string> notes_;
  std::shared_ptr<const PrecisionPlugin> precision_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<PolicyGemm> policy_gemm_;
  std::vector<std::vector<Bound>> units_;
};

}  // namespace ciuic::core
