// SPDX-License-Identifier: MIT
#include "optimizer/update_operands.h"

#include <algorithm>

namespace ciuic::plugins::optimizer {
namespace {

[[noreturn]] void refuse_type(const std::string& who, const ciuic_tensor& t,
                              const std::string& expected) {
  throw Error(CIUIC_UNIMPLEMENTED,
              who + ": got a tensor of " + dtype_name(t.t.dtype) + ", expected " + expected);
}

NumberFormat format_of(const std::string& who, const ciuic_tensor& t) {
  if (same(t.t.dtype, kF32)) {
    return NumberFormat::F32;
  }
  if (same(t.t.dtype, kBF16)) {
    return NumberFormat::BF16;
  }
  if (same(t.t.dtype, kF16)) {
    return NumberFormat::F16;
  }
  refuse_type(who, t, "f32, bf16 or f16");
}

char* memory_of(const std::string& who, const ciuic_tensor& t, int64_t count) {
  if (t.t.device.type != CIUIC_DEVICE_CPU || !is_contiguous(t) || num_elements(t) != count) {
    throw Error(CIUIC_INVALID, who + ": expected " + std::to_string(count) +
                                   " contiguous elements in host memory, got " +
                                   std::to_string(num_elements(t)));
  }
  return static_cast<char*>(tensor_data(t));
}

}  // namespace

UpdateOperands::UpdateOperands(const std::string& plugin, const ciuic_update& u,
                               const StateFormat& state)
    : count_(u.num_elements), state_format_(state), begin_(static_cast<uint64_t>(u.begin)) {
  const std::string who = "optimizer " + plugin + ": " + std::string(to_view(u.param->name));
  if (u.update == 0) {
    throw Error(CIUIC_INVALID, who + ": updates count from 1, got 0");
  }
  if (u.num_state != state.count) {
    throw Error(CIUIC_INVALID, who + ": got " + std::to_string(u.num_state) +
                                   " state tensors, expected " + std::to_string(state.count));
  }
  const auto column = [&](const ciuic_tensor& t) {
    const NumberFormat format = format_of(who, t);
    return Column{memory_of(who, t, count_), format};
  };
  grad_ = column(*u.grad);
  const ciuic_tensor& master = u.master != nullptr ? *u.master : *u.value;
  master_ = column(master);
  if (u.master != nullptr) {
    copy_ = column(*u.value);
    if (master_.format != NumberFormat::F32) {
      refuse_type(who, master, "a master of f32");
    }
    if (copy_.format == NumberFormat::F32) {
      refuse_type(who, *u.value, "a value of bf16 or f16 beside a master");
    }
  }
  for (size_t s = 0; s < state.count; ++s) {
    state_[s] = column(*u.state[s]);
    if (state_[s].format != state.format) {
      refuse_type(who, *u.state[s],
                  state.format == NumberFormat::F32 ? "state of f32" : "state of bf16");
    }
    rounding_[s] = hash_of({u.seed, u.update, to_view(u.param->name), s});
  }
}

float* UpdateOperands::fp32(const Column& column, int64_t begin, int64_t count,
                            std::array<float, kBlockElements>& buffer) {
  if (column.format == NumberFormat::F32) {
    return reinterpret_cast<float*>(column.at(begin));
  }
  widen(column.format, column.at(begin), count, buffer.data());
  return buffer.data();
}

Block UpdateOperands::load(int64_t number, Buffers& buffers) const {
  const int64_t begin = number * kBlockElements;
  Block block{};
  block.begin = begin;
  block.count = std::min(kBlockElements, count_ - begin);
  block.grad = fp32(grad_, begin, block.count, buffers.grad);
  block.value = fp32(master_, begin, block.count, buffers.value);
  for (size_t s = 0; s < state_format_.count; ++s) {
    block.state[s] = fp32(state_[s], begin, block.count, buffers.state[s]);
  }
  return block;
}

void UpdateOperands::store(const Block& block) const {
  const int64_t begin = block.begin;
  const Column& narrow_value = copy_.data != nullptr ? copy_ : master_;
  if (narrow_value.format != NumberFormat::F32) {
    narrow(narrow_value.format, block.value, block.count, narrow_value.at(begin));
  }
  if (state_format_.format == NumberFormat::F32) {
    return;
  }
  for (size_t s = 0; s < state_format_.count; ++s) {
    if (state_format_.by_chance) {
      narrow_by_chance(rounding_[s], begin_ + static_cast<uint64_t>(begin), block.state[s],
                       block.count, reinterpret_cast<uint16_t*>(state_[s].at(begin)));
    } else {
      narrow(state_format_.format, block.state[s], block.count, state_[s].at(begin));
    }
  }
}

}  // namespace ciuic::plugins::optimizer
