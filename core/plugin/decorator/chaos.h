// SPDX-License-Identifier: MIT
//
// The decorator `chaos`: faults on purpose, the same for the same seed.
#pragma once

#include <memory>

#include "core/plugin/decorator/decorate.h"

namespace ciuic::core {

std::unique_ptr<Layer> make_chaos(const ChaosSpec& spec, const DecoratorContext& context,
                                  std::unique_ptr<Layer> inner);

}  // namespace ciuic::core
