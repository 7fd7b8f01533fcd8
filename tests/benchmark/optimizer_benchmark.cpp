// SPDX-License-Identifier: MIT
//
// The end of a step on 50 M parameters in one thread: the norm of the gradients through the
// "ciuic.tensor" service, as ddp asks for it, then the clipped AdamW of the plugin, which writes the
// bf16 copy in the same pass. Gradients are not zeroed: a backward overwrites them. Not run by
// ctest; tests/peer/end_of_step.py runs it beside PyTorch:
//   ninja optimizer_benchmark && tests/optimizer_benchmark
#include <cmath>
#include <deque>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include <ciuic/testing/loaded_plugin.hpp>

#include "core/train/tensor_service.h"

namespace ciuic::testing {
namespace {

/// Like a model's, 49.9 M elements: embedding, head, ten layers and norms. end_of_step.py has the
/// same.
std::vector<int64_t> tensor_sizes() {
  constexpr int64_t kHidden = 512;
  constexpr int64_t kIntermediate = 1408;
  constexpr int64_t kVocabulary = 17408;
  std::vector<int64_t> sizes{kVocabulary * kHidden};
  for (int layer = 0; layer < 10; ++layer) {
    sizes.insert(sizes.end(), 4, kHidden * kHidden);
    sizes.insert(sizes.end(), 3, kIntermediate * kHidden);
    sizes.insert(sizes.end(), 2, kHidden);
  }
  sizes.push_back(kHidden);
  sizes.push_back(kVocabulary * kHidden);
  return sizes;
}

/// Every tensor of a step, as sharding holds them.
class Shard {
 public:
  Shard(const char* moments, bool has_copy)
      : optimizer_(plugin_.create(test_host_, {{"moments", std::string(moments)}})) {
    for (const int64_t count : tensor_sizes()) {
      add_parameter(count, has_copy);
    }
    for (size_t i = 0; i < updates_.size(); ++i) {
      updates_[i].param = &params_[i];
    }
  }

  double norm() {
    double sums[2] = {0, 0};
    const Tensor out(sums, kF64, {2});
    for (const ciuic_update& u : updates_) {
      host_.check(service_.table().stats(service_.table().ctx, u.grad, out.ptr(), nullptr));
    }
    return std::sqrt(sums[0]);
  }

  void update(double norm) {
    ++step_;
    for (ciuic_update& u : updates_) {
      u.update = step_;
      u.grad_scale = std::min(1.0, 1.0 / (norm + 1e-6));
    }
    optimizer_.check(optimizer_.table<ciuic_optimizer_vt>().update(optimizer_.self(),
                                                                   to_array(updates_), nullptr));
  }

  [[nodiscard]] int64_t elements() const { return elements_; }

 private:
  /// A tensor of its own memory, every byte `fill`.
  const ciuic_tensor* tensor(int64_t count, ciuic_dtype dtype, float fill = 0) {
    std::vector<char>& data = memory_.emplace_back(static_cast<size_t>(count * dtype_bytes(dtype)));
    if (fill != 0) {
      auto* x = reinterpret_cast<float*>(data.data());
      for (int64_t i = 0; i < count; ++i) {
        x[i] = fill * static_cast<float>(i % 1000 - 500);
      }
    }
    return tensors_.emplace_back(data.data(), dtype, std::vector<int64_t>{count}).ptr();
  }

  void add_parameter(int64_t count, bool has_copy) {
    ciuic_param param{};
    param.struct_size = sizeof(param);
    param.name = to_str("model.weight");
    param.num_elements = count;
    param.weight_decay = param.lr_scale = 1;
    params_.push_back(param);
    ciuic_array specs{};
    optimizer_.check(
        optimizer_.table<ciuic_optimizer_vt>().state_spec(optimizer_.self(), &param, &specs));
    std::vector<const ciuic_tensor*>& state = states_.emplace_back();
    for (const ciuic_state_spec& spec : ArrayView<ciuic_state_spec>(specs)) {
      state.push_back(tensor(count, spec.dtype));
    }
    ciuic_update u{};
    u.struct_size = sizeof(u);
    u.num_elements = count;
    u.seed = 1234;
    u.lr = 3e-4;
    u.weight_decay = u.grad_scale = 1;
    u.grad = tensor(count, kF32, 1e-6F);
    const ciuic_tensor* wide = tensor(count, kF32, 1e-4F);
    u.master = has_copy ? wide : nullptr;
    u.value = has_copy ? tensor(count, kBF16) : wide;
    u.state = state.data();
    u.num_state = static_cast<uint32_t>(state.size());
    updates_.push_back(u);
    elements_ += count;
  }

  TestHost test_host_;
  Host host_{test_host_.host()};
  core::TensorService service_{test_host_.table()};
  LoadedPlugin plugin_{std::string(CIUIC_BUILD_DIR) + "/plugins/libadamw.so"};
  PluginInstance optimizer_;
  std::deque<std::vector<char>> memory_;
  std::deque<Tensor> tensors_;
  std::deque<std::vector<const ciuic_tensor*>> states_;
  std::deque<ciuic_param> params_;
  std::vector<ciuic_update> updates_;
  int64_t elements_ = 0;
  uint64_t step_ = 0;
};

void report(benchmark::State& state, const Shard& shard, double bytes_per_element) {
  const double total = static_cast<double>(state.iterations() * shard.elements());
  state.counters["GB/s"] =
      benchmark::Counter(total * bytes_per_element / 1e9, benchmark::Counter::kIsRate);
}

void norm(benchmark::State& state) {
  Shard shard("fp32", true);
  for (auto _ : state) {
    benchmark::DoNotOptimize(shard.norm());
  }
  report(state, shard, 4);
}

void update_alone(benchmark::State& state) {
  Shard shard("fp32", false);
  for (auto _ : state) {
    shard.update(1);
  }
  report(state, shard, 28);
}

void end_of_step(benchmark::State& state, const char* moments, double bytes_per_element) {
  Shard shard(moments, true);
  for (auto _ : state) {
    shard.update(shard.norm());
  }
  report(state, shard, bytes_per_element);
}

BENCHMARK(norm)->Unit(benchmark::kMillisecond);
BENCHMARK(update_alone)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(end_of_step, fp32_moments, "fp32", 34)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(end_of_step, bf16_moments, "bf16", 26)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ciuic::testing

BENCHMARK_MAIN();
