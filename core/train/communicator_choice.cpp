// SPDX-License-Identifier: MIT
#include "core/train/communicator_choice.h"

#include <algorithm>

#include <ciuic/abi/ciuic.h>

namespace ciuic::core {
namespace {

constexpr const char* kAlone = "local";
constexpr const char* kOneMachine = "shm";
constexpr const char* kDevices = "nccl";
constexpr const char* kAnywhere = "gloo";

std::string ranks(int n) { return std::to_string(n) + (n == 1 ? " rank" : " ranks"); }

/// "" when the plugin can be tried.
std::string objection(const Catalog& catalog, const std::string& plugin,
                      const std::vector<RefusedCommunicator>& refused) {
  const auto said = std::find_if(refused.begin(), refused.end(),
                                 [&](const auto& r) { return r.plugin == plugin; });
  if (said != refused.end()) {
    return said->reason;
  }
  return catalog.offers(CIUIC_KIND_COMMUNICATOR, plugin) ? "" : "there is no plugin " + plugin;
}

}  // namespace

CommunicatorChoice choose_communicator(const Catalog& catalog, const RunSection& run, int world,
                                       int local_world,
                                       const std::vector<RefusedCommunicator>& refused) {
  const auto chosen = [](const std::string& plugin, const std::string& why) {
    return CommunicatorChoice{plugin, "communicator " + plugin + ": " + why};
  };
  if (world == 1) {
    return chosen(kAlone, "there is one rank");
  }
  std::string instead;
  if (run.device.starts_with("cuda")) {
    const std::string against = objection(catalog, kDevices, refused);
    if (against.empty()) {
      return chosen(kDevices, "the ranks compute on GPUs");
    }
    instead = "; not nccl: " + against;
  }
  if (local_world != world) {
    return chosen(kAnywhere, std::to_string(local_world) + " of " + ranks(world) +
                                 " run on this machine" + instead);
  }
  const std::string against = objection(catalog, kOneMachine, refused);
  return against.empty()
             ? chosen(kOneMachine, "all " + ranks(world) + " run on this machine" + instead)
             : chosen(kAnywhere, "all " + ranks(world) +
                                     " run on this machine, but not shm: " + against + instead);
}

std::vector<std::string> communicators_of_auto(const Catalog& catalog) {
  std::vector<std::string> all;
  for (const char* plugin : {kAlone, kOneMachine, kDevices, kAnywhere}) {
    if (catalog.offers(CIUIC_KIND_COMMUNICATOR, plugin)) {
      all.emplace_back(plugin);
    }
  }
  return all;
}

}  // namespace ciuic::core
