// SPDX-License-Identifier: MIT
#include "worlds.hpp"

#include <chrono>
#include <map>
#include <sstream>

namespace ciuic::testing::communicator {
namespace {

constexpr const char* kRefused = "refused ";

std::string live(const TestContext& test, ProcessRank& rank, const SceneBody& body) {
  rank.note("create");
  std::string answer;
  try {
    Group group = Group::create(test, rank);
    rank.meet("all ranks have created the group");
    Scene scene(test, rank, group);
    body(scene);
    rank.note("destroy");
    group.destroy();
    answer = scene.answer();
  } catch (const WorldNotServed& e) {
    return kRefused + std::string(e.what());
  }
  rank.note("after destroy");
  require(rank.host.balanced(),
          "rank " + std::to_string(rank.rank()) + ": after destroy " +
              std::to_string(rank.host.live_bytes()) + " bytes and " +
              std::to_string(rank.host.live_statuses()) + " statuses of the host are still held, " +
              std::to_string(rank.host.memory_faults()) + " memory faults; expected none");
  return answer;
}

/// The root of a failure: an exception or a death counts for more than what came of it.
void throw_failures(const std::vector<RankEnd>& ends, int world, const std::vector<int>& doomed) {
  std::string text;
  for (const RankEnd::How how :
       {RankEnd::How::CheckFailed, RankEnd::How::Signalled, RankEnd::How::Exited,
        RankEnd::How::Threw, RankEnd::How::Hung, RankEnd::How::CutShort}) {
    for (const RankEnd& end : ends) {
      bool is_doomed = false;
      for (const int rank : doomed) {
        is_doomed |= end.rank == (rank < 0 ? world + rank : rank);
      }
      if (end.how == how && !(is_doomed && how == RankEnd::How::Signalled && end.code == SIGKILL)) {
        text += (text.empty() ? "" : "\n  ") + end.describe();
      }
    }
  }
  require(text.empty(), "world " + std::to_string(world) + ": " + text);
}

/// "number of cases\nbits label\n..." of each rank.
int64_t compare_answers(const std::vector<RankEnd>& ends, int world) {
  int64_t tried = 0;
  std::map<std::string, std::pair<int, std::string>> first;  // by label: who, and what bits
  for (const RankEnd& end : ends) {
    std::istringstream lines(end.text);
    std::string line;
    std::getline(lines, line);
    tried += std::atoll(line.c_str());
    while (std::getline(lines, line)) {
      const std::string bits = line.substr(0, 16);
      const std::string label = line.substr(17);
      const auto [known, is_new] = first.try_emplace(label, end.rank, bits);
      require(is_new || known->second.second == bits,
              "world " + std::to_string(world) + ": " + label + ": ranks " +
                  std::to_string(known->second.first) + " and " + std::to_string(end.rank) +
                  " have different bits; expected the same on all ranks");
    }
  }
  return tried;
}

/// Nothing when the size is served.
std::string refusal(const std::vector<RankEnd>& ends, int world) {
  size_t refused = 0;
  std::string text;
  for (const RankEnd& end : ends) {
    if (end.how == RankEnd::How::Returned && end.text.rfind(kRefused, 0) == 0) {
      ++refused;
      text = end.text.substr(std::string(kRefused).size());
    }
  }
  require(refused == 0 || refused == ends.size(),
          "world " + std::to_string(world) + ": create refused on " + std::to_string(refused) +
              " of the ranks alone (" + text + "); expected the same answer on all");
  return text;
}

}  // namespace

void Scene::same_on_all_ranks(uint64_t bits, const std::string& label) {
  char text[20];
  std::snprintf(text, sizeof(text), "%016llx ", static_cast<unsigned long long>(bits));
  bits_ += text + label + "\n";
}

std::string Scene::answer() const { return std::to_string(num_tried_) + "\n" + bits_; }

void on_worlds(const TestContext& test, const WorldRun& run, const SceneBody& body) {
  int64_t tried = 0;
  std::string refused;
  for (const int world : run.worlds) {
    RankProcesses ranks(world);
    for (const int rank : run.doomed) {
      ranks.expect_death_of(rank < 0 ? world + rank : rank);
    }
    const auto limit = std::chrono::nanoseconds(
        static_cast<int64_t>(static_cast<double>(run.limit_ns) * test.patience));
    const std::vector<RankEnd> ends =
        ranks.run(limit, [&](ProcessRank& rank) { return live(test, rank, body); });
    throw_failures(ends, world, run.doomed);
    const std::string why = refusal(ends, world);
    if (why.empty()) {
      tried += compare_answers(ends, world);
    }
    refused = why.empty() ? refused : why;
    for (const RankEnd& end : ends) {
      refused = end.how == RankEnd::How::NotOffered ? end.text : refused;
    }
  }
  if (tried == 0) {
    throw NotOffered(refused.empty() ? "capabilities deny all that this test would try" : refused);
  }
}

}  // namespace ciuic::testing::communicator
