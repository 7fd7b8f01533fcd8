// SPDX-License-Identifier: MIT
//
// Static checks of a descriptor, before anything of the plugin but its query has run: versions,
// kind, names, the kind's table and its required functions, option specs.
#pragma once

#include <string>

#include <ciuic/abi/plugin.h>

namespace ciuic::core {

/// What is wrong with it, in one line; empty when nothing is.
std::string descriptor_problem(const ciuic_descriptor& descriptor);

}  // namespace ciuic::core
