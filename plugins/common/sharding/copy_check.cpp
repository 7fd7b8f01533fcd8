// SPDX-License-Identifier: MIT
#include "sharding/copy_check.h"

#include <cmath>
#include <cstdio>

#include <ciuic/error.hpp>

namespace ciuic::plugins::stages {
namespace {

/// What rounding to a type may do.
struct Rounding {
  double place;    // the last one of a number in [1, 2)
  double least;    // the steps near zero
  double largest;  // beyond, a number becomes infinity
};
constexpr Rounding kHalf{0x1p-10, 0x1p-24, 65504};
constexpr Rounding kBrainFloat{0x1p-7, 0x1p-133, 3.3e38};

/// NULL: values of this type are not looked at.
const Rounding* rounding_to(ciuic_dtype value) {
  return same(value, kBF16) ? &kBrainFloat : same(value, kF16) ? &kHalf : nullptr;
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
    const Rounding* rounding = u.master == nullptr ? nullptr : rounding_to(u.value->t.dtype);
    if (rounding == nullptr) {
      continue;
    }
    const double master = first_of(ops, *u.master, stream);
    const double value = first_of(ops, *u.value, stream);
    const bool fits = std::abs(master) <= rounding->largest;
    const double allowed = rounding->place * std::abs(master) + rounding->least;
    if (fits && !(std::abs(value - master) <= allowed)) {
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
