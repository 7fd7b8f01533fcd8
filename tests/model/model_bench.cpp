// SPDX-License-Identifier: MIT
// Time of one forward and backward of a preset: 4 rows of 256 tokens, one thread, without
// optimizer. And rates of bf16 products by themselves, own and LibTorch's.
//   model_bench --benchmark_filter=tiny/fp32
//   model_bench --benchmark_filter=product
#include <cstdlib>
#include <malloc.h>

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "core/model/model.h"
#include "core/model/parameter_specs.h"
#include "core/model/product.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

constexpr int64_t kBatch = 4;
constexpr int64_t kTokens = 256;

void step(benchmark::State& state, const std::string& name, at::ScalarType dtype) {
  at::set_num_threads(1);
  const ModelConfig config = preset(name);
  Model model(config, dtype, at::kCPU);
  TestParameters parameters(config, dtype, config.initializer_range);
  const at::Tensor tokens = some_tokens(kBatch, kTokens, config.vocab_size);
  const at::Tensor targets = some_tokens(kBatch, kTokens, config.vocab_size, 2);
  std::vector<LayerTape> tapes(config.num_hidden_layers);
  std::vector<std::vector<Bound>> units(model.num_units());
  for (int64_t unit = 0; unit < model.num_units(); ++unit) {
    units[unit] = parameters.bind(unit, /*overwrite=*/true);
  }
  const Pass pass{whole_rows(kBatch, kTokens), Mode::Train, {}, {}};
  const auto run = [&] {
    at::Tensor hidden = model.embed(units[0], tokens);
    for (int64_t unit = 1; unit < model.head_unit(); ++unit) {
      hidden = model.forward(unit, units[unit], hidden, pass, &tapes[unit - 1]);
    }
    HeadGradient head =
        model.head_loss_and_backward(units[model.head_unit()], hidden, targets, 1e-3);
    for (int64_t unit = model.head_unit() - 1; unit > 0; --unit) {
      head.dhidden = model.backward(unit, units[unit], head.dhidden, pass, tapes[unit - 1]);
    }
    model.embed_backward(units[0], tokens, head.dhidden);
    benchmark::DoNotOptimize(head.loss_sum);
  };
  run();
  run();
  for (auto _ : state) {
    run();
  }
  const double flops = flops_per_token(config, kTokens) * kBatch * kTokens;
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

struct Product {
  const char* name;
  int64_t rows, depth, width;
  bool a_transposed, b_transposed;
};

// What preset small multiplies, and squares for comparison.
constexpr Product kProducts[] = {
    {"gate_up", 1024, 384, 2048, false, true},
    {"gate_up_input", 1024, 2048, 384, false, false},
    {"down", 1024, 1024, 384, false, true},
    {"down_gradient", 384, 1024, 1024, true, false},
    {"query_up", 1024, 128, 512, false, true},
    {"expert_gate_up", 256, 384, 320, false, true},
    {"expert_down", 256, 160, 384, false, true},
    {"expert_gradient", 320, 256, 384, true, false},
    {"square512", 512, 512, 512, false, false},
    {"square1024", 1024, 1024, 1024, false, false},
    {"square2048", 2048, 2048, 2048, false, false},
};

void multiply(benchmark::State& state, const Product& p, bool is_own) {
  at::set_num_threads(1);
  const auto matrix = [](int64_t rows, int64_t columns, bool is_transposed) {
    return is_transposed ? normal("m", {columns, rows}, 1.0, at::kBFloat16).t()
                         : normal("m", {rows, columns}, 1.0, at::kBFloat16);
  };
  const at::Tensor a = matrix(p.rows, p.depth, p.a_transposed);
  const at::Tensor b = matrix(p.depth, p.width, p.b_transposed);
  const at::Tensor out = matrix(p.rows, p.width, false);
  for (auto _ : state) {
    is_own ? product_out(out, a, b) : reference::product_out(out, a, b);
  }
  const auto flops = static_cast<double>(2 * p.rows * p.depth * p.width);
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void with_products() {
  for (const Product& p : kProducts) {
    for (const bool is_own : {true, false}) {
      const std::string name = std::string("product/") + p.name + (is_own ? "/own" : "/libtorch");
      benchmark::RegisterBenchmark(name.c_str(), multiply, p, is_own)
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

void with_all(const char* name) {
  for (const auto& [suffix, dtype] :
       {std::pair{"/fp32", at::kFloat}, std::pair{"/bf16", at::kBFloat16}}) {
    benchmark::RegisterBenchmark((std::string(name) + suffix).c_str(), step, std::string(name),
                                 dtype)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace ciuic::core::testing

int main(int argc, char** argv) {
  // Large blocks stay in the heap: a run reuses its memory from the second step on, as the
  // trainer's do.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  for (const char* name : {"tiny", "small", "medium"}) {
    ciuic::core::testing::with_all(name);
  }
  ciuic::core::testing::with_products();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
