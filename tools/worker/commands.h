// SPDX-License-Identifier: MIT
//
// The commands that need tensors. Each returns the exit code or throws Failure.
#pragma once

#include "tools/ciuic/arguments.h"

namespace ciuic::tools {

/// Where a rank that ciuic started says why it failed; else stderr.
void show_failure(const std::string& text);

int train_rank(const Arguments& arguments);
int estimate(const Arguments& arguments);
int evaluate(const Arguments& arguments);
int generate(const Arguments& arguments);
int replay(const Arguments& arguments);
int replay_product(const Arguments& arguments);

}  // namespace ciuic::tools
