// SPDX-License-Identifier: MIT
#include "core/train/bad_pass.h"

#include <cmath>

#include <ATen/ops/isfinite.h>

namespace ciuic::core {
namespace {

constexpr double kMicroBatches = 1
                                 << 24;  // more than any step has; with any rank exact in a double

/// Words whose exponent is all ones are infinite or NaN.
template <typename Word>
bool has_no_full_exponent(const void* data, int64_t count, Word exponent) {
  const auto* words = static_cast<const Word*>(data);
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    found |= static_cast<uint32_t>((words[i] & exponent) == exponent);
  }
  return found == 0;
}

}  // namespace

double BadPass::vote(const std::optional<BadPass>& mine, int world) {
  if (!mine) {
    return 0;
  }
  return (world - mine->rank) * kMicroBatches - static_cast<double>(mine->micro_batch);
}

std::optional<BadPass> BadPass::elected(double maximum, int world) {
  if (maximum <= 0) {
    return std::nullopt;
  }
  const double ranks_after = std::ceil(maximum / kMicroBatches);
  return BadPass{world - static_cast<int>(ranks_after),
                 static_cast<uint32_t>(ranks_after * kMicroBatches - maximum)};
}

bool is_finite(const at::Tensor& tensor) {
  if (tensor.is_cpu() && tensor.is_contiguous()) {
    switch (tensor.scalar_type()) {
      case at::kFloat:
        return has_no_full_exponent<uint32_t>(tensor.const_data_ptr(), tensor.numel(), 0x7F800000U);
      case at::kBFloat16:
        return has_no_full_exponent<uint16_t>(tensor.const_data_ptr(), tensor.numel(), 0x7F80U);
      case at::kHalf:
        return has_no_full_exponent<uint16_t>(tensor.const_data_ptr(), tensor.numel(), 0x7C00U);
      default:
        break;
    }
  }
  return at::isfinite(tensor).all().item<bool>();
}

}  // namespace ciuic::core
