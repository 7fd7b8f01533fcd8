// SPDX-License-Identifier: MIT
//
// Updates of one small matrix in fp32: the rule's granule and state, then a step with it.
#include <cmath>
#include <vector>

#include <ciuic/testing/guarded_struct.hpp>
#include <ciuic/testing/numbers.hpp>

#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

constexpr int64_t kRows = 4;
constexpr int64_t kColumns = 8;
constexpr int64_t kElements = kRows * kColumns;

class OptimizerExercise final : public Exercise {
 public:
  OptimizerExercise(const TestContext& context, Bench& bench)
      : Exercise(context, bench), value_(kElements), gradient_(kElements) {
    param_.struct_size = sizeof(param_);
    param_.flags = CIUIC_PARAM_IN_NORM;
    param_.name = to_str("model.layers.0.mlp.up_proj.weight");
    param_.group = 1;
    param_.tied_to = -1;
    param_.value = param_.grad = param_.reduce = param_.master = kF32;
    param_.ndim = 2;
    param_.shape = param_.global_shape = shape_;
    param_.offset = offset_;
    param_.num_elements = kElements;
    param_.granule = 1;
    param_.weight_decay = param_.lr_scale = 1;
    for (int64_t i = 0; i < kElements; ++i) {
      value_[static_cast<size_t>(i)] = static_cast<float>(i - kElements / 2) / 32;
    }
  }

  void start(const Instance& o) override {
    const auto& vt = o.table<ciuic_optimizer_vt>();
    GuardedStruct<ciuic_param> param(param_);
    o.calls().check("granule", [&] { return vt.granule(o.self(), param.get(), &param_.granule); });
    param->granule = param_.granule;
    require(param_.granule >= 1, "granule is " + std::to_string(param_.granule));
    ciuic_array specs{};
    o.calls().check("state_spec", [&] { return vt.state_spec(o.self(), param.get(), &specs); });
    if (state_.empty()) {
      for (const ciuic_state_spec& spec : ArrayView<ciuic_state_spec>(specs)) {
        make_state(spec);
      }
    }
  }

  std::string round(const Instance& o, uint64_t number) override {
    for (int64_t i = 0; i < kElements; ++i) {
      gradient_[static_cast<size_t>(i)] =
          std::sin(static_cast<float>(i) + static_cast<float>(number));
    }
    const GuardedStruct<ciuic_param> param(param_);
    const Tensor value(value_.data(), kF32, {kElements});
    const Tensor gradient(gradient_.data(), kF32, {kElements}, {CIUIC_DEVICE_CPU, 0},
                          CIUIC_TENSOR_READ_ONLY);
    const GuardedStruct<ciuic_tensor> value_c(value.c());
    const GuardedStruct<ciuic_tensor> gradient_c(gradient.c());
    std::vector<const ciuic_tensor*> state;
    for (const Tensor& s : state_) {
      state.push_back(s.ptr());
    }
    ciuic_update u{};
    u.struct_size = sizeof(u);
    u.param = param.get();
    u.num_elements = kElements;
    u.update = number + 1;
    u.seed = context_.seed + number;
    u.lr = 0.01;
    u.weight_decay = 1;
    u.grad_scale = 1;
    u.grad = gradient_c.get();
    u.value = value_c.get();
    u.state = state.data();
    u.num_state = static_cast<uint32_t>(state.size());
    const GuardedArray<ciuic_update> updates({u});
    const auto& vt = o.table<ciuic_optimizer_vt>();
    o.calls().check("update", [&] { return vt.update(o.self(), updates.c(), nullptr); });
    return bytes_of(value_.data(), value_.size() * sizeof(float));
  }

 private:
  void make_state(const ciuic_state_spec& spec) {
    require(
        spec.granule >= 1 && spec.per_granule >= 1,
        "state " + std::string(to_view(spec.name)) + ": granule and per_granule are at least 1");
    const int64_t count = (kElements + spec.granule - 1) / spec.granule * spec.per_granule;
    std::vector<char>& data =
        data_.emplace_back(static_cast<size_t>(count * dtype_bytes(spec.dtype)));
    for (int64_t i = 0; i < count; ++i) {
      store_element(spec.dtype, data.data() + i * dtype_bytes(spec.dtype), spec.initial);
    }
    state_.emplace_back(data.data(), spec.dtype, std::vector<int64_t>{count});
  }

  int64_t shape_[2] = {kRows, kColumns};
  int64_t offset_[2] = {0, 0};
  ciuic_param param_{};
  std::vector<float> value_, gradient_;
  std::deque<std::vector<char>> data_;
  std::vector<Tensor> state_;
};

}  // namespace

std::unique_ptr<Exercise> exercise_optimizer(const TestContext& context, Bench& bench) {
  return std::make_unique<OptimizerExercise>(context, bench);
}

}  // namespace ciuic::testing::contract
