// SPDX-License-Identifier: MIT
// The arithmetic of activation memory against what an allocator counts during a step.
#include "core/model/activation_bytes.h"

#include <gtest/gtest.h>

#include "core/model/kernels/cpu_bf16_product.h"
#include "tests/model/counting_allocator.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

struct Shape {
  const char* preset;
  int64_t rows, tokens;
  void (*change)(ModelConfig&) = [](ModelConfig&) {};
};

class ActivationBytesTest : public ::testing::TestWithParam<Shape> {};

// What the run's own embedding and targets take is not an activation: tokens, and their copies.
TEST_P(ActivationBytesTest, AreWithinATenthOfWhatIsAllocated) {
  const Shape shape = GetParam();
  ModelConfig config = preset(shape.preset);
  shape.change(config);
  const at::Tensor tokens = some_tokens(shape.rows, shape.tokens, config.vocab_size);
  CountingAllocator& allocator = CountingAllocator::installed();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    Model model(config, dtype, at::kCPU);
    TestParameters parameters(config, dtype, config.initializer_range);
    for (const Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
      run_step(model, parameters, tokens, tokens, 1, true, {{}, {}, {}, recompute});
      const int64_t before = allocator.live();
      allocator.reset_peak();
      run_step(model, parameters, tokens, tokens, 1, true, {{}, {}, {}, recompute});
      const auto measured = static_cast<double>(allocator.peak() - before);
      const ActivationBytes predicted =
          activation_bytes(config, {shape.rows, shape.tokens, dtype == at::kFloat ? 4 : 2,
                                    recompute, false, false, !kernels::has_cpu_bf16_products()});
      EXPECT_NEAR(static_cast<double>(predicted.peak()) / measured, 1, 0.1)
          << dtype << " recompute " << static_cast<int>(recompute) << ": measured " << measured
          << ", kept " << predicted.kept << ", passing " << predicted.passing;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ActivationBytesTest,
    ::testing::Values(Shape{"tiny", 4, 256}, Shape{"tiny", 1, 512}, Shape{"small", 1, 256},
                      Shape{"tiny", 2, 256, [](ModelConfig& c) { c.num_nextn_predict_layers = 1; }},
                      Shape{"tiny", 2, 256, [](ModelConfig& c) {
                              c.q_lora_rank.reset(), c.first_k_dense_replace = 4;
                            }}));

}  // namespace
}  // namespace ciuic::core::testing
