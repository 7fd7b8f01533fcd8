// SPDX-License-Identifier: MIT
//
// The commands of `ciuic`, one file each. Each returns the exit code or throws Failure.
#pragma once

#include "tools/ciuic/arguments.h"

namespace ciuic::tools {

int train(const Arguments& arguments);
int config(const Arguments& arguments);
int plugin(const Arguments& arguments);
int checkpoint(const Arguments& arguments);
int bench(const Arguments& arguments);
int tokenize(const Arguments& arguments);

}  // namespace ciuic::tools
