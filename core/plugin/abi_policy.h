// SPDX-License-Identifier: MIT
//
// Which plugins a host runs, by the numbers of the plugin ABI alone (docs/plugin_abi.md).
//
// Major 0: nothing is promised yet, so both numbers must agree. From 1.0 on a host runs every plugin
// of its major, older or newer; only a plugin that says it needs more than the host has is refused.
// A plugin's own minor number is information and is never compared then.
#pragma once

#include <cstdint>
#include <string>

namespace ciuic::core {

struct AbiVersion {
  uint32_t major = 0;
  uint32_t minor = 0;
};

/// Why the host refuses the plugin, with both numbers and a remedy; empty when it runs it.
std::string abi_problem(AbiVersion host, AbiVersion plugin, uint32_t min_host_minor);

}  // namespace ciuic::core
