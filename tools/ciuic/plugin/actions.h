// SPDX-License-Identifier: MIT
//
// The actions of `ciuic plugin`, one file each. Each returns the exit code or throws Failure.
#pragma once

#include "tools/ciuic/arguments.h"

namespace ciuic::tools {

int plugin_list(const Arguments& arguments);
int plugin_inspect(const Arguments& arguments);
int plugin_schema(const Arguments& arguments);
int plugin_check(const Arguments& arguments);
int plugin_new(const Arguments& arguments);
int plugin_lock(const Arguments& arguments);
int plugin_diff(const Arguments& arguments);
int plugin_replay(const Arguments& arguments);
int plugin_quarantine(const Arguments& arguments);

}  // namespace ciuic::tools
