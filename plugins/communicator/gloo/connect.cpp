// SPDX-License-Identifier: MIT
#include "connect.h"

#include <algorithm>
#include <utility>

#include "communicator/liveness.h"
#include "communicator/text.h"
#include "network.h"
#include "process_group.h"

namespace ciuic::plugins::gloo {
namespace {

/// What a rank tells its peers before it connects.
struct Introduction {
  std::string identity;
  std::vector<Address> addresses;

  [[nodiscard]] std::string text() const { return identity + " " + to_text(addresses); }
  static Introduction parse(const std::string& text) {
    const size_t space = text.find(' ');
    return {text.substr(0, space), from_text(text.substr(space + 1))};
  }
};

/// Everybody's introduction, by group rank. Names who is missing at the deadline.
std::vector<Introduction> introduce(const Membership& group, bool one_host,
                                    std::chrono::nanoseconds timeout) {
  const Introduction own{own_identity(), one_host ? std::vector<Address>() : own_addresses()};
  std::vector<Introduction> all;
  for (const std::string& text : exchange(group, "join", own.text(), timeout, "gloo")) {
    all.push_back(Introduction::parse(text));
  }
  return all;
}

std::string pick_address(const Settings& settings, const std::vector<Introduction>& all, int rank) {
  if (!settings.interface.empty()) {
    return settings.interface;
  }
  if (settings.one_host) {
    return "127.0.0.1";
  }
  std::vector<std::vector<Address>> peers;
  for (size_t r = 0; r < all.size(); ++r) {
    if (r != static_cast<size_t>(rank)) {
      peers.push_back(all[r].addresses);
    }
  }
  const std::string address = choose_address(all[static_cast<size_t>(rank)].addresses, peers);
  if (address.empty()) {
    throw Error(
        CIUIC_UNAVAILABLE,
        "gloo: ranks run on several machines, and this one has no address that they could reach; "
        "set communicator.gloo.interface");
  }
  return address;
}

}  // namespace

std::shared_ptr<Session> connect(const Host& host, const Settings& settings,
                                 const Membership& membership, std::chrono::nanoseconds timeout) {
  const auto& [ranks, rank, kv] = membership;
  if (ranks.size() == 1) {
    return std::make_shared<Session>(host);
  }
  const auto deadline = Clock::now() + timeout;
  const std::vector<Introduction> all = introduce(membership, settings.one_host, timeout);
  const std::string address = pick_address(settings, all, rank);
  const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now());
  const GroupOptions group{kv->below("gloo"),
                           rank,
                           static_cast<int>(ranks.size()),
                           address,
                           !is_literal(address),
                           settings.threads,
                           std::max(left, Milliseconds(1))};
  std::vector<Member> members;
  for (size_t r = 0; r < ranks.size(); ++r) {
    members.push_back({ranks[r], all[r].identity});
  }
  return std::make_shared<Session>(host, Blame(*kv, std::move(members), rank),
                                   connect_group(group));
}

}  // namespace ciuic::plugins::gloo
