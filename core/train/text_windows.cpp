// SPDX-License-Identifier: MIT
#include "core/train/text_windows.h"

#include <algorithm>

namespace ciuic::core {

int64_t TextWindows::count() const {
  const int64_t after_first = std::max<int64_t>(0, targets_ - sequence_);
  return 1 + (after_first + stride_ - 1) / stride_;
}

TextWindow TextWindows::at(int64_t index) const {
  const int64_t begin = index * stride_;
  return {begin, std::min(sequence_, targets_ - begin), index == 0 ? 0 : sequence_ - stride_};
}

}  // namespace ciuic::core
