// SPDX-License-Identifier: MIT
//
// Who is this process? RANK and WORLD_SIZE, both set, mean that a launcher (torchrun, a script,
// ciuic itself) started it as one rank of many; without them it starts ranks of its own.
#pragma once

#include <optional>
#include <string>

namespace ciuic::core {

struct RankIdentity {
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  int local_world = 1;
};

/// The rank that the environment names; nothing when none does. `rendezvous` is run.rendezvous:
/// with "auto" or "env://" MASTER_ADDR and MASTER_PORT must be there too. Throws Failure
/// (Environment) that names the variable that is missing, no number, or out of range.
std::optional<RankIdentity> rank_from_environment(const std::string& rendezvous);

/// Cores that this process may use: its affinity mask, capped by the cgroup's CPU quota. At
/// least 1.
int usable_cores();

}  // namespace ciuic::core
