// SPDX-License-Identifier: MIT
#include "sharding/copy_check.h"

#include <cmath>
#include <cstdio>

#include <ciuic/error.hpp>

namespace ciuic::plugins::stages {
namespace {

constexpr double kLargestHalf = 65504;
constexpr double kLeastHalf = 0x1p-24;  // steps of fp16 near zero; bf16 has the range of fp32

/// Of the last place, for a number in [1, 2); 0: values of this type are not looked at.
double place_of(ciuic_dtype value) {
  return same(value, kBF16) ? 0x1p-7 : same(value, kF16) ? 0x1p-10 : 0;
}

double first_of(const TensorOps& ops, const ciuic_tensor& t, const ciuic_stream* stream) {
  const Tensor first(static_cast<char*>(t.t.data) + t.t.byte_offset, t.t.dtype, {1}, t.t.device);
  return ops.read<1>(first, stream)[0];
}

std::string text(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.6g", x);
  return buffer;
}

}  // namespace

bool is_looked_at(uint64_t update) { return update != 0 && (update & (update - 1)) == 0; }

void check_copies(const TensorOps& ops, const std::vector<ciuic_update>& updates,
                  const ciuic_stream* stream, const std::string& who) {
  for (const ciuic_update& u : updates) {
    const double place = u.master == nullptr ? 0 : place_of(u.value->t.dtype);
    if (place == 0) {
      continue;
    }
    const double master = first_of(ops, *u.master, stream);
    const double value = first_of(ops, *u.value, stream);
    const bool fits = std::abs(master) <= kLargestHalf;
    if (fits && !(std::abs(value - master) <= place * std::abs(master) + kLeastHalf)) {
      throw Error(CIUIC_INVALID,
                  who + ": after update " + std::to_string(u.update) + " element " +
                      std::to_string(u.begin) + " of " + std::string(to_view(u.param->name)) +
                      " is " + text(value) + " in " + dtype_name(u.value->t.dtype) +
                      ", and its fp32 master " + text(master) +
                      ": the optimizer must write value beside master (see ciuic plugin check)");
    }
  }
}

}  // namespace ciuic::plugins::stages
