// SPDX-License-Identifier: MIT
#include "connect.h"

#include <sstream>
#include <unistd.h>
#include <utility>

#include "communicator/liveness.h"
#include "cores.h"

namespace ciuic::plugins::shm {
namespace {

constexpr const char* kWho = "shm";
constexpr size_t kMostRanks = 256;  // channels are one for each pair
constexpr const char* kFine = "fine";

struct Introduction {
  std::string identity, cores;

  static Introduction parse(const std::string& text) {
    const size_t space = text.find(' ');
    return {text.substr(0, space), text.substr(space + 1)};
  }
  /// Boot and process namespace.
  [[nodiscard]] std::string machine() const { return identity.substr(0, identity.find('|')); }
};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(CIUIC_UNIMPLEMENTED, "shm: " + why);
}

std::vector<Introduction> introduce(const Membership& group, std::chrono::nanoseconds timeout) {
  std::vector<Introduction> all;
  for (const std::string& text :
       exchange(group, "join", own_identity() + " " + own_cores(), timeout, kWho)) {
    all.push_back(Introduction::parse(text));
  }
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].machine() != all[0].machine()) {
      refuse("rank " + std::to_string(group.ranks[r]) + " (" + all[r].machine() +
             ") shares no memory with rank " + std::to_string(group.ranks[0]) + " (" +
             all[0].machine() + "), as it runs on another machine or in another process namespace");
    }
  }
  return all;
}

/// Where the memory is, or why there is none: "pid descriptor" or "!text".
std::string offer(SharedFile& memory, size_t bytes) {
  try {
    memory = SharedFile::make("ciuic-group", bytes);
    return std::to_string(::getpid()) + " " + std::to_string(memory.descriptor());
  } catch (const Error& e) {
    return std::string("!") + e.what();
  }
}

/// kFine, or why it could not.
std::string open_offered(SharedFile& memory, const std::string& place, size_t bytes) {
  if (place.rfind('!', 0) == 0) {
    return place.substr(1);
  }
  try {
    int pid = 0;
    int descriptor = -1;
    std::istringstream(place) >> pid >> descriptor;
    memory = SharedFile::open(pid, descriptor, bytes);
    return kFine;
  } catch (const Error& e) {
    return e.what();
  }
}

SharedFile share(const Membership& group, std::chrono::nanoseconds timeout) {
  const size_t bytes = Board::bytes_for(static_cast<int>(group.ranks.size()));
  SharedFile memory;
  std::string outcome = kFine;
  if (group.rank == 0) {
    const std::string place = offer(memory, bytes);
    group.kv->set("memory", place);
    outcome = place.rfind('!', 0) == 0 ? place.substr(1) : kFine;
  } else {
    const auto place = group.kv->get("memory", Clock::now() + timeout);
    if (!place) {
      throw Error(CIUIC_DEADLINE,
                  "shm: rank " + std::to_string(group.ranks[0]) + " did not offer its memory",
                  group.ranks[0]);
    }
    outcome = open_offered(memory, *place, bytes);
  }
  const std::vector<std::string> outcomes = exchange(group, "opened", outcome, timeout, kWho);
  for (size_t r = 0; r < outcomes.size(); ++r) {
    if (outcomes[r] != kFine) {
      refuse("rank " + std::to_string(group.ranks[r]) + ": " + outcomes[r]);
    }
  }
  memory.close_descriptor();
  return memory;
}

}  // namespace

Team connect(const Membership& group, std::chrono::nanoseconds timeout) {
  const int world = static_cast<int>(group.ranks.size());
  if (group.ranks.size() > kMostRanks) {
    refuse("a group of " + std::to_string(world) + " ranks, expected at most " +
           std::to_string(kMostRanks));
  }
  const std::vector<Introduction> all = introduce(group, timeout);
  Team team;
  team.board = std::make_unique<Board>(share(group, timeout), world, group.rank);
  team.board->state(group.rank).life = Life::Here;
  std::vector<std::string> cores;
  for (size_t r = 0; r < all.size(); ++r) {
    team.members.push_back({group.ranks[r], all[r].identity});
    cores.push_back(all[r].cores);
  }
  team.may_spin = have_a_core_each(cores);
  team.board->set_chunk_bytes(team.may_spin ? kCachedChunkBytes : kSlotBytes);
  return team;
}

}  // namespace ciuic::plugins::shm
