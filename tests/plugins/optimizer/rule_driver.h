// SPDX-License-Identifier: MIT
//
// One parameter with gradient, master, narrow copy and state as vectors that a test can look at, and
// a rule driven on it through its table.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <ciuic/testing/numbers.hpp>

#include "../plugins.h"

namespace ciuic::testing {

inline std::vector<float> random_values(size_t n, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& x : out) {
    x = normal(engine);
  }
  return out;
}

inline float f16_to_float(uint16_t code) {
  return static_cast<float>(load_element(kF16, reinterpret_cast<const char*>(&code)));
}
inline uint16_t float_to_f16(float x) {
  uint16_t code = 0;
  store_element(kF16, reinterpret_cast<char*>(&code), x);
  return code;
}

/// What an update says beside the tensors.
struct Step {
  uint64_t update = 1;
  double lr = 3e-3;
  double weight_decay = 1;
  double grad_scale = 1;
  uint64_t seed = 7;
};

struct Operand {
  explicit Operand(size_t n, const char* name = "w")
      : value(n), grad(n), shape{static_cast<int64_t>(n)} {
    param.struct_size = sizeof(param);
    param.name = to_str(name);
    param.weight_decay = 1;
    param.lr_scale = 1;
    param.num_elements = static_cast<int64_t>(n);
  }
  /// A matrix.
  Operand(int64_t rows, int64_t columns, const char* name)
      : Operand(static_cast<size_t>(rows * columns), name) {
    shape = {rows, columns};
  }

  std::vector<float> value, grad;
  std::vector<uint16_t> copy;         // the narrow copy, if any
  std::vector<uint16_t> narrow_grad;  // in place of grad, if any
  ciuic_dtype copy_type = kBF16;
  ciuic_dtype narrow_grad_type = kBF16;
  bool has_master = true;  // else the copy is the master
  std::vector<std::vector<char>> state;
  std::vector<ciuic_dtype> state_type;
  std::vector<int64_t> shape;
  ciuic_param param{};

  /// fp32 state.
  [[nodiscard]] float* state_of(size_t s) { return reinterpret_cast<float*>(state.at(s).data()); }
};

class RuleDriver {
 public:
  explicit RuleDriver(const char* name) : plugin(load_plugin(name)) {}

  PluginInstance make(OptionValues options = {}) const {
    return plugin.create(host, std::move(options));
  }

  /// Asks for the state and makes it, once.
  static void prepare(const PluginInstance& rule, Operand& o) {
    o.param.ndim = static_cast<int32_t>(o.shape.size());
    o.param.shape = o.param.global_shape = o.shape.data();
    if (!o.state.empty()) {
      return;
    }
    ciuic_array specs{};
    rule.check(rule.table<ciuic_optimizer_vt>().state_spec(rule.self(), &o.param, &specs));
    for (const ciuic_state_spec& spec : ArrayView<ciuic_state_spec>(specs)) {
      o.state.emplace_back(o.value.size() * static_cast<size_t>(dtype_bytes(spec.dtype)));
      o.state_type.push_back(spec.dtype);
    }
  }

  /// Elements [begin, end) of an operand; all by default.
  static void update(const PluginInstance& rule, Operand& o, const Step& step, int64_t begin = 0,
                     int64_t end = -1) {
    prepare(rule, o);
    const int64_t n = (end < 0 ? static_cast<int64_t>(o.value.size()) : end) - begin;
    const auto view = [&](void* data, ciuic_dtype dtype) {
      return Tensor(static_cast<char*>(data) + begin * dtype_bytes(dtype), dtype, {n});
    };
    const Tensor grad = o.narrow_grad.empty() ? view(o.grad.data(), kF32)
                                              : view(o.narrow_grad.data(), o.narrow_grad_type);
    const Tensor master = view(o.value.data(), kF32);
    const Tensor value = o.copy.empty() ? master : view(o.copy.data(), o.copy_type);
    std::vector<Tensor> state;
    std::vector<const ciuic_tensor*> state_pointers;
    for (size_t s = 0; s < o.state.size(); ++s) {
      state.push_back(view(o.state[s].data(), o.state_type[s]));
    }
    for (const Tensor& s : state) {
      state_pointers.push_back(s.ptr());
    }
    ciuic_update u{};
    u.struct_size = sizeof(u);
    u.param = &o.param;
    u.begin = begin;
    u.num_elements = n;
    u.update = step.update;
    u.seed = step.seed;
    u.lr = step.lr;
    u.weight_decay = step.weight_decay;
    u.grad_scale = step.grad_scale;
    u.grad = grad.ptr();
    u.master = o.copy.empty() || !o.has_master ? nullptr : master.ptr();
    u.value = value.ptr();
    u.state = state_pointers.data();
    u.num_state = static_cast<uint32_t>(state_pointers.size());
    rule.check(rule.table<ciuic_optimizer_vt>().update(rule.self(), {&u, 1, sizeof(u)}, nullptr));
  }

  TestHost host;
  LoadedPlugin plugin;
};

}  // namespace ciuic::testing
