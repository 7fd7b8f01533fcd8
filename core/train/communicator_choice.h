// SPDX-License-Identifier: MIT
//
// What communicator.plugin = "auto" stands for: the fastest communicator that reaches all ranks. A
// function of what all ranks know alike, so all choose the same. The one place of core that names
// plugins: a default has to.
#pragma once

#include <string>
#include <vector>

#include "core/config/run_config.h"
#include "core/plugin/catalog.h"

namespace ciuic::core {

/// A communicator that turned out not to serve here, and what it said.
struct RefusedCommunicator {
  std::string plugin;
  std::string reason;
};

struct CommunicatorChoice {
  std::string plugin;
  std::string why;  // a line for the log
};

/// `local_world`: ranks on this machine.
[[nodiscard]] CommunicatorChoice choose_communicator(
    const Catalog& catalog, const RunSection& run, int world, int local_world,
    const std::vector<RefusedCommunicator>& refused);

/// Everything that "auto" may stand for, as far as the catalogue has it.
[[nodiscard]] std::vector<std::string> communicators_of_auto(const Catalog& catalog);

}  // namespace ciuic::core
