// SPDX-License-Identifier: MIT
//
// The decorator `shadow`: a candidate beside the trusted plugin. It is given copies of the same
// arguments, and its answers are compared bit for bit and thrown away.
#pragma once

#include <memory>

#include "core/plugin/decorator/decorate.h"

namespace ciuic::core {

/// Throws what creating the candidate throws.
std::unique_ptr<Layer> make_shadow(const ShadowSpec& spec, const DecoratorContext& context,
                                   std::unique_ptr<Layer> inner);

}  // namespace ciuic::core
