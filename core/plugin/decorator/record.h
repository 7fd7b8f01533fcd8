// SPDX-License-Identifier: MIT
//
// The decorator `record`: every call and what came of it, in a file that `ciuic plugin replay` runs
// again.
#pragma once

#include <memory>

#include "core/plugin/decorator/decorate.h"

namespace ciuic::core {

/// Throws Failure (Storage) when the file cannot be made.
std::unique_ptr<Layer> make_record(const RecordSpec& spec, const DecoratorContext& context,
                                   std::unique_ptr<Layer> inner);

}  // namespace ciuic::core
