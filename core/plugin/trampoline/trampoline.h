// SPDX-License-Identifier: MIT
//
// The lowest layer: the host's own functions around a plugin's instance. Each call gets a number
// and a breadcrumb, exceptions end here, and the works that it returns carry its name.
#pragma once

#include <memory>

#include "core/plugin/trampoline/layer.h"

namespace ciuic::core {

/// The layer around a plugin's own instance, of any kind, which it destroys at its end.
std::unique_ptr<Layer> make_trampoline(const ciuic_descriptor& descriptor, ciuic_instance* instance,
                                       std::shared_ptr<CallGuard> guard);

}  // namespace ciuic::core
