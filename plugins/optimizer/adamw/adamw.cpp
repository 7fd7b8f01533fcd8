// SPDX-License-Identifier: MIT
//
// Optimizer "adamw": torch.optim.AdamW (Decoupled Weight Decay Regularization, arXiv:1711.05101)
// with fp32 moments. One pass over gradient, master, both moments and the low-precision copy:
// memory is read and written once.
//
// Gradients: fp32 or bf16. Masters: fp32; where there is none, the value is the master and may be
// fp32 or bf16 (the latter loses small updates; a precision policy with masters does not). Left
// out: amsgrad, bf16 moments.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/optimizer.hpp>

#include "glob.h"
#include "kernel.h"

namespace ciuic::plugins::adamw {
namespace {

// The unit of the pass: a block's operands stay in the first-level cache between its few loops.
constexpr int64_t kBlock = 1024;
constexpr int64_t kBlocksPerThread = 32;  // fewer are not worth waking a thread

/// Raw operands of one ciuic_update.
struct Operands {
  Scalars scalars;
  int64_t count;
  const void* grad;
  bool is_grad_bf16;
  float* master;    // NULL: the value is the master, in bf16
  uint16_t* value;  // the bf16 copy; NULL: none
  float* exp_avg;
  float* exp_avg_sq;
  int64_t first_block;  // in the numbering over all updates
};

void update_block(const Operands& o, int64_t begin, int64_t count) {
  alignas(64) std::array<float, kBlock> grad_block;
  alignas(64) std::array<float, kBlock> value_block;
  const float* grad = static_cast<const float*>(o.grad) + begin;
  if (o.is_grad_bf16) {
    from_bf16(count, static_cast<const uint16_t*>(o.grad) + begin, grad_block.data());
    grad = grad_block.data();
  }
  float* master = value_block.data();
  if (o.master != nullptr) {
    master = o.master + begin;
  } else {
    from_bf16(count, o.value + begin, master);
  }
  update(o.scalars, count, grad, master, o.exp_avg + begin, o.exp_avg_sq + begin);
  if (o.value != nullptr) {
    to_bf16(count, master, o.value + begin);
  }
}

class AdamW final : public Optimizer {
 public:
  static constexpr const char* name = "adamw";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "Adam with decoupled weight decay, as torch.optim.AdamW";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  static constexpr std::array<const char*, 2> features{"rule:adamw", nullptr};
  static constexpr uint32_t kShared = CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL;
  inline static const auto options = option_table(
      option_f64("beta1", 0.9, 0.0, 1.0, "Decay of the mean of gradients; below 1", kShared),
      option_f64("beta2", 0.95, 0.0, 1.0, "Decay of the mean of squared gradients; below 1",
                 kShared),
      option_f64("epsilon", 1e-8, 0.0, 1.0, "Added to the root of the second moment", kShared),
      option_f64("weight_decay", 0.1, 0.0, 100.0,
                 "Decoupled weight decay: a step multiplies the values by 1 - lr * weight_decay",
                 kShared),
      option_strings("no_decay",
                     "Parameters without weight decay: patterns with * and ? over full names, "
                     "for example \"*norm*\"; by default all decay, as in torch",
                     kShared));

  explicit AdamW(const Context& context)
      : Optimizer(context),
        beta1_(context.options().f64("beta1")),
        beta2_(context.options().f64("beta2")),
        epsilon_(context.options().f64("epsilon")),
        weight_decay_(context.options().f64("weight_decay")),
        no_decay_(context.options().strings("no_decay")),
        threads_(host().find_service<ciuic_thread_service>("ciuic.threads")) {
    validate(context);
  }

  static void validate(const Context& context) {
    for (const char* beta : {"beta1", "beta2"}) {
      if (const double value = context.options().f64(beta); !(value < 1)) {
        throw Error(CIUIC_INVALID, std::string(beta) + " = " + std::to_string(value) +
                                       " keeps the first moment for ever; use less than 1");
      }
    }
  }

  [[nodiscard]] const std::vector<ciuic_state_spec>& state_spec(const ciuic_param&) const override {
    return specs_;
  }

  void update(ArrayView<ciuic_update> updates, const ciuic_stream* stream) const override {
    if (stream != nullptr) {
      throw Error(CIUIC_UNIMPLEMENTED, "optimizer adamw works on host memory only");
    }
    std::vector<Operands> operands;
    operands.reserve(updates.size());
    int64_t num_blocks = 0;
    for (const ciuic_update& u : updates) {
      operands.push_back(operands_of(u, num_blocks));
      num_blocks += (u.num_elements + kBlock - 1) / kBlock;
    }
    run(operands, num_blocks);
  }

 private:
  [[nodiscard]] Scalars scalars_of(const ciuic_update& u) const {
    if (u.update == 0) {
      throw Error(CIUIC_INVALID, "updates count from 1, got 0");
    }
    const auto t = static_cast<double>(u.update);
    const double decay = decays(*u.param) ? weight_decay_ * u.weight_decay : 0.0;
    Scalars s{};
    s.grad_scale = static_cast<float>(u.grad_scale);
    s.decay = static_cast<float>(1 - u.lr * decay);
    s.beta1 = static_cast<float>(beta1_);
    s.one_minus_beta1 = static_cast<float>(1 - beta1_);
    s.beta2 = static_cast<float>(beta2_);
    s.one_minus_beta2 = static_cast<float>(1 - beta2_);
    s.correction2 = static_cast<float>(std::sqrt(1 - std::pow(beta2_, t)));
    s.epsilon = static_cast<float>(epsilon_);
    s.step_size = static_cast<float>(-u.lr / (1 - std::pow(beta1_, t)));
    return s;
  }

  [[nodiscard]] Operands operands_of(const ciuic_update& u, int64_t first_block) const {
    if (u.num_state != specs_.size()) {
      throw Error(CIUIC_INVALID,
                  "got " + std::to_string(u.num_state) + " state tensors, expected 2");
    }
    Operands o{};
    o.scalars = scalars_of(u);
    o.count = u.num_elements;
    o.first_block = first_block;
    o.is_grad_bf16 = same(u.grad->t.dtype, kBF16);
    o.grad = o.is_grad_bf16 ? operand(u, *u.grad, kBF16) : operand(u, *u.grad, kF32);
    o.exp_avg = static_cast<float*>(operand(u, *u.state[0], kF32));
    o.exp_avg_sq = static_cast<float*>(operand(u, *u.state[1], kF32));
    const ciuic_tensor& master = u.master != nullptr ? *u.master : *u.value;
    if (u.master != nullptr || same(master.t.dtype, kF32)) {
      o.master = static_cast<float*>(operand(u, master, kF32));
    }
    if (&master != u.value || !same(master.t.dtype, kF32)) {
      o.value = static_cast<uint16_t*>(operand(u, *u.value, kBF16));
    }
    return o;
  }

  /// The memory of a tensor that the kernel can take.
  static void* operand(const ciuic_update& u, const ciuic_tensor& t, ciuic_dtype dtype) {
    const std::string who = "optimizer adamw: " + std::string(to_view(u.param->name));
    if (!same(t.t.dtype, dtype)) {
      throw Error(CIUIC_UNIMPLEMENTED, who + ": got a tensor of " + dtype_name(t.t.dtype) +
                                           ", expected " + dtype_name(dtype));
    }
    if (t.t.device.type != CIUIC_DEVICE_CPU || !is_contiguous(t) ||
        num_elements(t) != u.num_elements) {
      throw Error(CIUIC_INVALID, who + ": expected " + std::to_string(u.num_elements) +
                                     " contiguous elements in host memory, got " +
                                     std::to_string(num_elements(t)));
    }
    return tensor_data(t);
  }

  [[nodiscard]] bool decays(const ciuic_param& param) const {
    return std::none_of(no_decay_.begin(), no_decay_.end(), [&](const std::string& pattern) {
      return matches(pattern, to_view(param.name));
    });
  }

  /// All blocks of all updates as one range over the threads.
  void run(const std::vector<Operands>& operands, int64_t num_blocks) const {
    const auto body = [](void* context, int64_t begin, int64_t end) {
      const auto& all = *static_cast<const std::vector<Operands>*>(context);
      auto o =
          std::upper_bound(all.begin(), all.end(), begin,
                           [](int64_t block, const Operands& x) { return block < x.first_block; }) -
          1;
      for (int64_t block = begin; block < end; ++block) {
        while (o + 1 != all.end() && (o + 1)->first_block <= block) {
          ++o;
        }
        const int64_t at = (block - o->first_block) * kBlock;
        update_block(*o, at, std::min(kBlock, o->count - at));
      }
    };
    void* context = const_cast<std::vector<Operands>*>(&operands);
    if (num_blocks == 0) {
      return;
    }
    if (threads_ == nullptr) {
      body(context, 0, num_blocks);
    } else {
      host().check(threads_->parallel(threads_->ctx, num_blocks, kBlocksPerThread, body, context));
    }
  }

  double beta1_, beta2_, epsilon_, weight_decay_;
  std::vector<std::string> no_decay_;
  const ciuic_thread_service* threads_;
  std::vector<ciuic_state_spec> specs_{moment_spec("exp_avg", kF32),
                                       moment_spec("exp_avg_sq", kF32)};
};

}  // namespace
}  // namespace ciuic::plugins::adamw

CIUIC_PLUGINS(ciuic::plugins::adamw::AdamW)
