// SPDX-License-Identifier: MIT
// Which tokens multi-token prediction predicts (field bug B068). The layer's numbers:
// model_test.cpp, golden_test.cpp.
#include "core/model/prediction_layer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "core/model/head.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

constexpr int64_t kNone = kIgnoredTarget;

std::vector<int64_t> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

at::Tensor row(const std::vector<int64_t>& values) { return at::tensor(values).unsqueeze(0); }

/// One row t0..t7 whose documents begin at `starts`.
Rows documents(const std::vector<int64_t>& starts) {
  return document_rows(row(starts).to(at::kInt));
}

// Position i predicts t(i + 2); the main loss has 7 targets, depth 1 has 6.
TEST(PredictionLayer, FieldB068PredictsTheTokenAfterTheNext) {
  const at::Tensor tokens = at::arange(8).unsqueeze(0);
  const at::Tensor targets = shifted(tokens, 1, kNone);
  EXPECT_EQ(numbers(targets), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, kNone}));
  EXPECT_EQ(numbers(prediction_targets(targets, whole_rows(1, 8), 1)),
            (std::vector<int64_t>{2, 3, 4, 5, 6, 7, kNone, kNone}));
  EXPECT_EQ(numbers(shifted(tokens, 1, 0)), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 0}));
}

// As two documents of 4: 3 + 3 targets and 2 + 2, none from the other document.
TEST(PredictionLayer, FieldB068StaysInsideDocuments) {
  const at::Tensor targets = row({1, 2, 3, kNone, 5, 6, 7, kNone});
  const Rows rows = documents({0, 0, 0, 0, 4, 4, 4, 4});
  EXPECT_EQ(numbers(prediction_targets(targets, rows, 1)),
            (std::vector<int64_t>{2, 3, kNone, kNone, 6, 7, kNone, kNone}));
  EXPECT_EQ(numbers(prediction_targets(targets, rows, 2)),
            (std::vector<int64_t>{3, kNone, kNone, kNone, 7, kNone, kNone, kNone}));
}

// A row of training has a target for its last token too, which depth 1 has not.
TEST(PredictionLayer, FieldB068EvenWhereTheRowsLastTokenHasATarget) {
  const at::Tensor targets = row({1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(numbers(prediction_targets(targets, documents({0, 0, 0, 3, 3, 3, 3, 3}), 1)),
            (std::vector<int64_t>{2, 3, kNone, 5, 6, 7, 8, kNone}));
}

// A mean over a depth's targets divides by their number, not by that of the main loss.
TEST(PredictionLayer, FieldB068CountsItsOwnTargets) {
  ModelConfig config = small_config();
  Model model(config, at::kFloat, at::kCPU);
  const TestParameters parameters(config, at::kFloat);
  const at::Tensor normed = normal("normed", {1, 8, config.hidden_size}, 1.0, at::kFloat);
  const at::Tensor targets = row({1, 2, 3, 4, 5, 6, 7, kNone});
  const std::vector<Bound> head = parameters.bind_values(model.head_unit());
  EXPECT_EQ(model.head_loss(head, normed, targets).num_tokens, 7);
  EXPECT_EQ(model.predicted_loss(head, normed, prediction_targets(targets, whole_rows(1, 8), 1))
                .num_tokens,
            6);
}

}  // namespace
}  // namespace ciuic::core::testing
