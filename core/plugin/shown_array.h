// SPDX-License-Identifier: MIT
//
// Arrays that a call of a plugin gave to the host.
#pragma once

#include <string>

#include <ciuic/view.hpp>

#include "core/plugin/array_problem.h"
#include "core/plugin/instance.h"

namespace ciuic::core {

/// The array that `op` of the plugin gave. Throws Failure (Plugin) when it is none.
template <typename T>
ArrayView<T> shown_array(const ciuic_array& array, const Instance& by, const char* op) {
  if (const std::string problem = array_problem<T>(array, "what it gives"); !problem.empty()) {
    throw Failure(ExitCode::Plugin, by.full_name() + ": " + problem, "this is a bug in the plugin",
                  {{"op", op}});
  }
  return array;
}

}  // namespace ciuic::core
