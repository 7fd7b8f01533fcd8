// SPDX-License-Identifier: MIT
// Against what transformers says about small models that together take every path: logits, losses,
// routing and every gradient, in f32 and f64. tests/reference/write_goldens.py wrote the files, from
// the reference in f64; the weights come from a rule that both sides share.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <ATen/ops/cat.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/model/model.h"
#include "tests/model/test_model.h"
#include "tests/model/uniform_values.h"

namespace ciuic::core::testing {
namespace {

using nlohmann::json;

constexpr int64_t kSigns = 8;  // signed sums of a gradient in a file

struct Tolerances {
  at::ScalarType dtype;
  double logits;     // x max(1, largest logit)
  double loss;       // relative
  double gradients;  // || a - b || / || b ||
};
// f32: those of the reference test. f64: the rotary tables have f32 values on both sides, whose
// cosines and sines differ in the last place.
constexpr Tolerances kFloat{at::kFloat, 1e-5, 1e-6, 1e-4};
constexpr Tolerances kDouble{at::kDouble, 1e-6, 1e-8, 1e-6};

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(CIUIC_SOURCE_DIR "/tests/golden")) {
    names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Golden : public ::testing::TestWithParam<std::tuple<std::string, Tolerances>> {
 protected:
  Golden()
      : file_(json::parse(
            std::ifstream(CIUIC_SOURCE_DIR "/tests/golden/" + std::get<0>(GetParam()) + ".json"))),
        config_(from_json(file_["config"], std::get<0>(GetParam()))),
        seed_(file_["seed"]),
        model_(config_, tolerances().dtype, at::kCPU),
        parameters_(config_, tolerances().dtype) {
    const double deviation = file_["deviation"];
    for (const auto& [name, value] : parameters_.values()) {
      value.copy_(reference_weight(name, value.sizes().vec(), seed_, deviation));
    }
    for (const auto& [name, bias] : model_.expert_biases()) {
      bias.copy_(reference_weight(name, bias.sizes().vec(), seed_, deviation));
    }
    const at::Tensor text =
        uniform_tokens("tokens", {rows(), length() + 1}, config_.vocab_size, seed_);
    tokens_ = text.narrow(1, 0, length()).contiguous();
    targets_ = text.narrow(1, 1, length()).contiguous();
  }

  [[nodiscard]] static const Tolerances& tolerances() { return std::get<1>(GetParam()); }
  [[nodiscard]] int64_t rows() const { return file_["rows"]; }
  [[nodiscard]] int64_t length() const { return file_["tokens"]; }

  /// Sorted, as the file has them: int64 [mixtures, B * T, K].
  std::vector<std::vector<std::vector<int64_t>>> chosen_experts() {
    const Pass pass{whole_rows(rows(), length()), Mode::Evaluate, {}, {}};
    std::vector<std::vector<std::vector<int64_t>>> chosen;
    at::Tensor hidden = model_.embed(parameters_.bind_values(0), tokens_);
    for (int64_t unit = 1; unit <= model_.last_layer_unit(); ++unit) {
      LayerTape tape;
      hidden = model_.forward(unit, parameters_.bind_values(unit), hidden, pass, &tape);
      if (!config_.is_moe_layer(unit - 1)) {
        continue;
      }
      const at::Tensor sorted =
          std::get<0>(tape.mixture.routing.experts_NK.to(at::kLong).sort(1)).contiguous();
      auto& mixture = chosen.emplace_back();
      for (int64_t n = 0; n < sorted.size(0); ++n) {
        const int64_t* row = sorted.const_data_ptr<int64_t>() + n * sorted.size(1);
        mixture.emplace_back(row, row + sorted.size(1));
      }
    }
    return chosen;
  }

  /// An estimate of || a - b || / || b || from the signed sums of the gradient b.
  static double sketched_error(const std::string& name, const at::Tensor& a, const json& b) {
    const at::Tensor flat = a.to(at::kDouble).flatten();
    double squares = 0;
    for (int64_t k = 0; k < kSigns; ++k) {
      const at::Tensor signs =
          uniform_values(name + "#" + std::to_string(k), {flat.numel()}, 0).ge(0).mul(2.0).sub(1.0);
      const double sum = flat.mul(signs).sum().item<double>();
      const double off = sum - b[static_cast<size_t>(k + 1)].get<double>();
      squares += off * off / kSigns;
    }
    const double norm = b[0];
    return squares == 0 ? 0 : std::sqrt(squares) / norm;
  }

  json file_;
  ModelConfig config_;
  uint64_t seed_;
  Model model_;
  TestParameters parameters_;
  at::Tensor tokens_, targets_;
};

TEST_P(Golden, RoutingIsThatOfTheReference) {
  const std::vector<std::vector<std::vector<int64_t>>> expected = file_["experts"];
  EXPECT_EQ(chosen_experts(), expected);
}

TEST_P(Golden, LogitsAreThoseOfTheReference) {
  const at::Tensor logits = run_logits(model_, parameters_, tokens_).to(at::kDouble).flatten();
  const at::Tensor expected = at::tensor(file_["logits"].get<std::vector<double>>(), at::kDouble);
  const double largest = std::max(1.0, expected.abs().max().item<double>());
  EXPECT_LE(logits.sub(expected).abs().max().item<double>(), tolerances().logits * largest);
}

TEST_P(Golden, LossesAndGradientsAreThoseOfTheReference) {
  Pass pass;
  pass.objective.prediction = file_["mtp_weight"];
  const auto tokens = static_cast<double>(tokens_.numel());
  double prediction_sum = 0;
  const double loss_sum = run_step(model_, parameters_, tokens_, targets_, 1 / tokens,
                                   /*overwrite=*/true, pass, &prediction_sum);
  const double loss = file_["loss"];
  EXPECT_NEAR(loss_sum / tokens, loss, tolerances().loss * loss);
  if (model_.num_depths() > 0) {
    double predicted = 0;
    for (int64_t depth = 1; depth <= model_.num_depths(); ++depth) {
      predicted += static_cast<double>(rows() * (length() - depth));
    }
    const double expected = file_["mtp_loss"];
    EXPECT_NEAR(prediction_sum / predicted, expected, tolerances().loss * expected);
  }
  size_t compared = 0;
  for (const ParameterSpec& spec : parameters_.specs()) {
    if (!spec.is_tied()) {
      EXPECT_LE(sketched_error(spec.name, parameters_.gradient(spec.name),
                               file_["gradients"].at(spec.name)),
                tolerances().gradients)
          << spec.name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, file_["gradients"].size());
}

INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         ::testing::Combine(::testing::ValuesIn(golden_names()),
                                            ::testing::Values(kFloat, kDouble)),
                         [](const auto& test) {
                           return std::get<0>(test.param) +
                                  (std::get<1>(test.param).dtype == at::kFloat ? "_f32" : "_f64");
                         });

}  // namespace
}  // namespace ciuic::core::testing
