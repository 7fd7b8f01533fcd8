// SPDX-License-Identifier: MIT
//
// What this process's descriptors point at, so that one which was replaced under its number (dup2) is
// seen as well as one that was opened or closed.
#pragma once

#include <map>
#include <string>
#include <sys/types.h>
#include <utility>

namespace ciuic::tools {

/// By number: device and inode.
using OpenDescriptors = std::map<int, std::pair<dev_t, ino_t>>;

OpenDescriptors open_descriptors();

/// "descriptor 1 points elsewhere"; empty: every one of `before` is as it was.
std::string replaced(const OpenDescriptors& before, const OpenDescriptors& after);

/// "descriptors 4, 5"; empty: none is new.
std::string opened(const OpenDescriptors& before, const OpenDescriptors& after);

}  // namespace ciuic::tools
