// SPDX-License-Identifier: MIT
#include "membership.h"

#include <algorithm>
#include <utility>

#include <ciuic/view.hpp>

#include "communicator/text.h"

namespace ciuic::plugins {

Membership whole_world(const Host& host, int rank, int world) {
  Membership group;
  group.rank = rank;
  for (int32_t r = 0; r < world; ++r) {
    group.ranks.push_back(r);
  }
  if (world > 1) {
    const KeyValue kv(host, "");
    const int64_t instance = kv.add("instances/" + std::to_string(rank), 1);
    group.kv = kv.below("group" + std::to_string(instance));
  }
  return group;
}

Membership child_of(const Membership& parent, const ciuic_split& request, int64_t number,
                    const std::string& who) {
  const auto refuse = [&](int32_t rank, const char* why) {
    throw Error(CIUIC_INVALID, who + ": split \"" + std::string(to_view(request.name)) +
                                   "\": rank " + std::to_string(rank) + why);
  };
  Membership child;
  child.rank = -1;
  for (uint32_t i = 0; i < request.count; ++i) {
    const int32_t r = request.ranks[i];
    if (r < 0 || static_cast<size_t>(r) >= parent.ranks.size()) {
      refuse(r, " is not in the group");
    }
    if (std::count(request.ranks, request.ranks + i, r) > 0) {
      refuse(r, " occurs twice");
    }
    child.ranks.push_back(parent.ranks[static_cast<size_t>(r)]);
    child.rank = r == parent.rank ? static_cast<int>(i) : child.rank;
  }
  if (child.rank < 0) {
    refuse(parent.rank, " is not in its own group; ask with count 0 to be in none");
  }
  if (parent.kv) {
    child.kv =
        parent.kv->below("split" + std::to_string(number) + "-" + std::to_string(request.ranks[0]));
  }
  return child;
}

std::vector<std::string> exchange(const Membership& group, const std::string& name,
                                  const std::string& own, std::chrono::nanoseconds timeout,
                                  const std::string& who) {
  const auto deadline = Clock::now() + timeout;
  const auto& [ranks, rank, kv] = group;
  kv->set(name + "/" + std::to_string(rank), own);
  std::vector<std::string> all;
  std::vector<int32_t> missing;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (auto text = kv->get(name + "/" + std::to_string(r), deadline)) {
      all.push_back(*std::move(text));
    } else {
      missing.push_back(ranks[r]);
    }
  }
  if (!missing.empty()) {
    throw Error(CIUIC_DEADLINE,
                who + ": rank " + std::to_string(ranks[static_cast<size_t>(rank)]) + " waited " +
                    to_seconds(timeout) + " for the group of " + name_ranks(ranks) +
                    "; no sign of " + name_ranks(missing),
                missing.front());
  }
  return all;
}

}  // namespace ciuic::plugins
