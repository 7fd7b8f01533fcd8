// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace ciuic::core {

/// What backward computes again instead of keeping it: nothing; norms, the up-projections of
/// attention and SwiGLUs; or the whole layer but for its input. The bits of a gradient are the same
/// in all three. Source: DeepSeek-V3, arXiv:2412.19437, section 3.2.3 (selective).
enum class Recompute { None, Selective, Full };

/// By its name in a run file: "none", "selective" or "full".
inline Recompute recompute_named(std::string_view name) {
  return name == "full"        ? Recompute::Full
         : name == "selective" ? Recompute::Selective
                               : Recompute::None;
}

}  // namespace ciuic::core
