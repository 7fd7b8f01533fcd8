// SPDX-License-Identifier: MIT
//
// Where the records of a run go, looked at before the run starts: two in one file would destroy
// each other, and a file that is no call log would be lost.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/config/problem.h"
#include "core/plugin/decorator/decorator_spec.h"

namespace ciuic::core {

/// The decorators of one plugin of a run.
struct DecoratedPlugin {
  uint32_t kind = 0;
  std::string plugin;
  std::span<const DecoratorSpec> decorators;
};

/// `folder` is the run's, `world` the number of its ranks. Nothing is written.
std::vector<Problem> record_problems(std::span<const DecoratedPlugin> plugins,
                                     const std::string& folder, int world);

}  // namespace ciuic::core
