// SPDX-License-Identifier: MIT
//
// A plugin's asynchronous work as the host hands it out: while somebody waits in it, the thread's
// breadcrumb names the call that it came from.
#pragma once

#include <memory>

#include <ciuic/abi/work.h>

#include "core/plugin/trampoline/call_guard.h"

namespace ciuic::core {

/// Takes over the reference to `work`. `function` lives for ever.
ciuic_work* trace_work(ciuic_work* work, std::shared_ptr<CallGuard> guard, const char* function,
                       uint64_t sequence);

}  // namespace ciuic::core
