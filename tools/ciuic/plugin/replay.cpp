// SPDX-License-Identifier: MIT
//
// ciuic plugin replay: becomes the worker, since a plugin's code runs, and may want tensors.
#include "tools/ciuic/plugin/actions.h"
#include "tools/ciuic/worker_process.h"

namespace ciuic::tools {

int plugin_replay(const Arguments& arguments) { become_worker("replay", arguments); }

}  // namespace ciuic::tools
