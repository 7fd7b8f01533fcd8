// SPDX-License-Identifier: MIT
#include "optimizer/update_operands.h"

#include "optimizer/rounding_key.h"

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
    : count_(u.num_elements),
      begin_(static_cast<uint64_t>(u.begin)),
      key_(rounding_key(u.seed, u.update, to_view(u.param->name))) {
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
  all_.grad = column(*u.grad);
  const ciuic_tensor& master = u.master != nullptr ? *u.master : *u.value;
  all_.master = column(master);
  if (u.master != nullptr) {
    all_.copy = column(*u.value);
    if (all_.master.format != NumberFormat::F32) {
      refuse_type(who, master, "a master of f32");
    }
    if (all_.copy.format == NumberFormat::F32) {
      refuse_type(who, *u.value, "a value of bf16 or f16 beside a master");
    }
  }
  all_.by_chance = state.by_chance;
  for (size_t s = 0; s < state.count; ++s) {
    all_.state[s] = column(*u.state[s]);
    if (all_.state[s].format != state.format) {
      refuse_type(who, *u.state[s],
                  state.format == NumberFormat::F32 ? "state of f32" : "state of bf16");
    }
  }
}

Block UpdateOperands::from(int64_t begin, int64_t end) const {
  const uint64_t index = begin_ + static_cast<uint64_t>(begin);
  Block block = all_;
  block.begin = begin;
  block.first = static_cast<uint32_t>(index);
  block.count = std::min(end - begin, (int64_t{1} << 32) - int64_t{block.first});
  block.key = key_of_stretch(key_, index >> 32);
  for (Column* column :
       {&block.grad, &block.master, &block.copy, &block.state[0], &block.state[1]}) {
    *column = column->from(begin);
  }
  return block;
}

}  // namespace ciuic::plugins::optimizer
