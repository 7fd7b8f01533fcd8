// SPDX-License-Identifier: MIT
//
// A service of the host fails on one of two ranks: that rank's life ends in a status, or in right
// numbers without it, and leaves nothing behind. Its peer is killed then, as a launcher would.
#include <chrono>
#include <csignal>
#include <thread>

#include "../contract/guarded_services.hpp"
#include "../process_state.hpp"
#include "../runner_message.hpp"
#include "communicator_suite.hpp"
#include "flight.hpp"

namespace ciuic::testing::communicator {
namespace {

using contract::FaultPlan;
using contract::FaultyService;

constexpr int kWorld = 2;
constexpr int64_t kMostFaults = 100;
constexpr int64_t kTrySeconds = 20;
constexpr const char* kEnded = "the rank whose service fails has ended";

/// The services of one rank, of which the next call number `call` fails.
class FailingServices {
 public:
  FailingServices(ProcessRank& rank, int64_t call)
      : host_(rank.host.host()),
        kv_(host_, plan_, service<ciuic_kv_service>("ciuic.kv")),
        tensor_(host_, plan_, service<ciuic_tensor_service>("ciuic.tensor")),
        threads_(host_, plan_, service<ciuic_thread_service>("ciuic.threads")) {
    rank.host.offer("ciuic.kv", guard_all(kv_).table());
    rank.host.offer("ciuic.tensor", guard_all(tensor_).table());
    rank.host.offer("ciuic.threads", guard_all(threads_).table());
    plan_.strike(call, CIUIC_UNAVAILABLE);
  }

  /// What failed; empty: there were fewer calls.
  [[nodiscard]] std::string struck() const { return plan_.struck(); }

 private:
  template <typename Table>
  const Table& service(const char* name) const {
    return *static_cast<const Table*>(host_.table()->service(host_.table()->ctx, name, 0));
  }

  Host host_;
  FaultPlan plan_;
  FaultyService<ciuic_kv_service> kv_;
  FaultyService<ciuic_tensor_service> tensor_;
  FaultyService<ciuic_thread_service> threads_;
};

/// From create to destroy with a sum between. Throws what a call of it reports.
void life(const TestContext& test, ProcessRank& rank) {
  rank.note("create");
  Group group = Group::create(test, rank);
  try {
    Scene scene(test, rank, group);
    need_sum(scene);
    const Flight flight = take_off(scene, sum_of(scene, 1000), scene.patient(5 * kSecond));
    const Outcome out = scene.group.wait(flight.work, scene.patient(10 * kSecond));
    require(out.has_ended, "a sum has not ended: " + out.describe());
    if (out.error) {
      throw Error(*out.error);
    }
    const auto fault = flight.buffers->find_fault();
    require(!fault, "a sum that succeeded: " + fault.value_or(""));
    group.quiesce(scene.patient(10 * kSecond));
  } catch (const Error&) {
    rank.note("destroy after a failure");
    group.destroy();
    throw;
  }
  rank.note("destroy");
  group.destroy();
}

/// What failed; empty: nothing did.
std::string struck_life(const TestContext& test, ProcessRank& rank, int64_t call) {
  const ProcessResources before = process_resources();
  // Never freed, as the host: a thread of the plugin may be late.
  const auto& services = *new FailingServices(rank, call);
  const auto where = [&] {
    return services.struck().empty() ? "no service failed" : services.struck() + " failed";
  };
  bool has_failed = false;
  try {
    life(test, rank);
  } catch (const CheckFailed& e) {
    throw CheckFailed(where() + ": " + e.what());
  } catch (const WorldNotServed&) {
    if (services.struck().empty()) {
      throw;
    }
    has_failed = true;
  } catch (const Error& e) {
    require(!services.struck().empty(), std::string("without a fault: ") + e.what());
    has_failed = true;
  }
  const std::string imbalance = rank.host.imbalance();
  require(imbalance.empty(), where() + ", and after destroy " + imbalance);
  const std::string left = left_behind(before);
  require(left.empty(), where() + ", and after destroy there are still " + left);
  if (has_failed) {
    rank.tell(kEnded);
  }
  return services.struck();
}

/// The other rank. It lives until its peer has failed, whatever it is doing then.
std::string peer_life(const TestContext& test, ProcessRank& rank) {
  std::thread([&rank] {
    rank.await(kEnded, std::chrono::hours(1));
    ::raise(SIGKILL);
  }).detach();
  try {
    life(test, rank);
  } catch (const Error& e) {  // of a peer that has failed
    rank.note(e.what());
  }
  return "";
}

/// Whether there was a call of that number.
bool fault_is_survived(const TestContext& test, int struck_rank, int64_t call) {
  RankProcesses ranks(kWorld);
  ranks.expect_death_of(1 - struck_rank);
  const auto limit = std::chrono::nanoseconds(
      static_cast<int64_t>(1e9 * static_cast<double>(kTrySeconds) * test.patience));
  const std::vector<RankEnd> ends = ranks.run(limit, [&](ProcessRank& rank) {
    return rank.rank() == struck_rank ? struck_life(test, rank, call) : peer_life(test, rank);
  });
  const RankEnd& end = ends[static_cast<size_t>(struck_rank)];
  const RankEnd& peer = ends[static_cast<size_t>(1 - struck_rank)];
  if (end.how == RankEnd::How::NotOffered) {
    throw NotOffered(end.text);
  }
  require(end.how == RankEnd::How::Returned, "a service fails on rank " +
                                                 std::to_string(struck_rank) + " of " +
                                                 std::to_string(kWorld) + ", call number " +
                                                 std::to_string(call + 1) + ": " + end.describe());
  const bool is_killed = peer.how == RankEnd::How::Signalled && peer.code == SIGKILL;
  require(is_killed || peer.how == RankEnd::How::Returned || peer.how == RankEnd::How::NotOffered,
          "a service fails on rank " + std::to_string(struck_rank) +
              ", and its peer: " + peer.describe());
  return !end.text.empty();  // the name of what failed
}

void service_fails(const TestContext& test) {
  const int64_t last_begin =
      now_ns() + static_cast<int64_t>(1e9 * static_cast<double>(kTrySeconds) * test.patience);
  int64_t faults = 0;
  for (const int struck_rank : {0, 1}) {
    for (int64_t call = 0; call < kMostFaults && now_ns() < last_begin; ++call) {
      if (!fault_is_survived(test, struck_rank, call)) {
        break;
      }
      ++faults;
    }
  }
  if (faults == 0) {
    throw NotOffered("it calls no service that can fail");
  }
}

}  // namespace

TestTable service_tests() {
  return {{"communicator.failure.service_fails", 3, CIUIC_KIND_COMMUNICATOR, 120,
           "a service that fails at any call on one of two ranks ends in a status, and in balance",
           service_fails}};
}

}  // namespace ciuic::testing::communicator
