// SPDX-License-Identifier: MIT
#include "core/plugin/abi_policy.h"

namespace ciuic::core {
namespace {

std::string text(AbiVersion v) { return std::to_string(v.major) + "." + std::to_string(v.minor); }

}  // namespace

std::string abi_problem(AbiVersion host, AbiVersion plugin, uint32_t min_host_minor) {
  const std::string both =
      "it was built for plugin ABI " + text(plugin) + ", this host has " + text(host);
  if (plugin.major != host.major) {
    return both + "; rebuild it with this host's SDK";
  }
  if (host.major == 0) {
    return plugin.minor == host.minor
               ? ""
               : both + ", and before 1.0 both numbers must agree; rebuild it with this host's SDK";
  }
  if (min_host_minor > host.minor) {
    return "it needs a host of plugin ABI " + text({host.major, min_host_minor}) +
           " or newer, this host has " + text(host) + "; use a newer ciuic or an older plugin";
  }
  return "";
}

}  // namespace ciuic::core
