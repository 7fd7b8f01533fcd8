// SPDX-License-Identifier: MIT
//
// Which cores a rank may use. Ranks that have a core each may wait for each other in a loop for a
// moment; where cores are shared, a waiting rank must leave its core at once to whom it waits for.
#pragma once

#include <string>
#include <vector>

namespace ciuic::plugins::shm {

/// Of the calling process, one word: "0,1,5/2" - the cores of its affinity, and how many of them its
/// control group lets it use at a time.
[[nodiscard]] std::string own_cores();

/// Whether all these processes can have a core each.
[[nodiscard]] bool have_a_core_each(const std::vector<std::string>& cores_of_ranks);

}  // namespace ciuic::plugins::shm
