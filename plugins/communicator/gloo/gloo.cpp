// SPDX-License-Identifier: MIT
//
// Communicator "gloo": LibTorch's ProcessGroupGloo over TCP, for ranks on CPUs. Layers, from the
// contract down:
//   gloo.cpp           options, groups, how they connect
//   collectives.*      a collective becomes calls of Gloo and local arithmetic (reduction.*)
//   session.*          deadlines, failure, abort (who is to blame: liveness.*)
//   process_group.*    LibTorch
// Left out for now: send and recv, all-to-all, gather, scatter, reduce, uneven parts, device
// memory.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/communicator.hpp>

#include "collectives.h"
#include "key_value.h"
#include "liveness.h"
#include "network.h"
#include "process_group.h"
#include "session.h"

namespace ciuic::plugins::gloo {
namespace {

constexpr Milliseconds kGoodbye{1000};

/// What a group's members have in common.
struct Settings {
  std::chrono::nanoseconds timeout{};
  std::string interface;
  int threads = 2;
  bool one_host = true;
};

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

std::string join(const std::vector<int32_t>& numbers) {
  std::string text;
  for (const int32_t n : numbers) {
    text += text.empty() ? "" : ", ";
    text += std::to_string(n);
  }
  return text;
}

std::string seconds(std::chrono::nanoseconds t) {
  std::string text = std::to_string(std::chrono::duration<double>(t).count());
  return text.substr(0, text.find('.') + 4) + " s";
}

/// Everybody's introduction, by group rank. Names who is missing at the deadline.
std::vector<Introduction> introduce(const KeyValue& kv, const std::vector<int32_t>& ranks, int rank,
                                    bool one_host, std::chrono::nanoseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  const Introduction own{own_identity(), one_host ? std::vector<Address>() : own_addresses()};
  kv.set("join/" + std::to_string(rank), own.text());
  std::vector<Introduction> all;
  std::vector<int32_t> missing;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (const auto text = kv.get("join/" + std::to_string(r), deadline)) {
      all.push_back(Introduction::parse(*text));
    } else {
      missing.push_back(ranks[r]);
    }
  }
  if (!missing.empty()) {
    throw Error(CIUIC_DEADLINE,
                "gloo: rank " + std::to_string(ranks[static_cast<size_t>(rank)]) + " waited " +
                    seconds(timeout) + " for the group of ranks " + join(ranks) +
                    "; no sign of rank " + join(missing),
                missing.front());
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

class Gloo final : public Communicator {
 public:
  static constexpr const char* name = "gloo";
  static constexpr const char* version = "0.1.0";
  static constexpr const char* vendor = "ciuic";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "LibTorch's Gloo: collectives over TCP in host memory";
  static constexpr uint32_t flags =
      CIUIC_FLAG_NEVER_UNLOAD | CIUIC_FLAG_OWN_THREADS | CIUIC_FLAG_DETERMINISTIC;
  inline static const auto options =
      option_table(option_duration("timeout", 30'000'000'000, 1'000'000, 86'400'000'000'000,
                                   "Deadline of every operation and of connecting",
                                   CIUIC_OPTION_ALL_RANKS_EQUAL),
                   option_string("interface", "",
                                 "One network interface or address of this machine; empty: "
                                 "loopback when all ranks are on one machine, "
                                 "else the network that the other machines share"),
                   option_i64("threads", 2, 1, 64, "Operations that run at the same time"));

  static void validate(const Context& context) {
    const std::string interface = context.options().string("interface");
    if (interface.find_first_of("^,= ") != std::string::npos) {
      throw Error(CIUIC_INVALID, "gloo: interface = \"" + interface +
                                     "\": expected one interface or address, such as eth0 or "
                                     "10.0.0.1; lists and exclusions "
                                     "belong to NCCL");
    }
  }

  explicit Gloo(const Context& c) : Communicator(c), settings_(read(c)), rank_(c.rank()) {
    for (int32_t r = 0; r < c.world(); ++r) {
      ranks_.push_back(r);
    }
    if (c.world() > 1) {
      // A second instance in the same generation (a swap there and back) must not read the first
      // one's keys.
      const KeyValue kv(host(), "");
      const int64_t instance = kv.add("instances/" + std::to_string(rank_), 1);
      kv_ = kv.below("group" + std::to_string(instance));
    }
    connect(settings_.timeout);
  }

  Gloo(const Host& host, Settings settings, std::vector<int32_t> ranks, int rank,
       std::optional<KeyValue> kv, std::chrono::nanoseconds timeout)
      : Communicator(host),
        settings_(std::move(settings)),
        ranks_(std::move(ranks)),
        rank_(rank),
        kv_(std::move(kv)) {
    connect(timeout);
  }

  ~Gloo() override {
    session_->close(
        std::min(kGoodbye, std::chrono::duration_cast<Milliseconds>(settings_.timeout)));
  }

  uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                        ciuic_device device) const override {
    return capability_bits(op, reduce, dtype, device);
  }

  Work submit(ArrayView<ciuic_collective> collectives, const ciuic_stream* stream) override {
    if (stream != nullptr && stream->device.type != CIUIC_DEVICE_CPU) {
      throw Error(CIUIC_UNIMPLEMENTED, "gloo: works in host memory and has no streams");
    }
    std::vector<Operation> operations;
    for (const ciuic_collective& collective : collectives) {
      operations.push_back(
          plan(collective, host(), rank_, static_cast<int>(ranks_.size()), settings_.timeout));
    }
    return session_->submit(std::move(operations));
  }

  std::unique_ptr<Communicator> split(const ciuic_split& request) override {
    session_->check();
    const int64_t number = ++num_splits_;  // equal on all ranks: all of them call
    if (request.count == 0) {
      return nullptr;
    }
    std::vector<int32_t> global;
    int rank = -1;
    for (uint32_t i = 0; i < request.count; ++i) {
      const int32_t parent = request.ranks[i];
      const bool repeated = std::count(request.ranks, request.ranks + i, parent) > 0;
      if (parent < 0 || static_cast<size_t>(parent) >= ranks_.size() || repeated) {
        throw Error(CIUIC_INVALID, "gloo: split \"" + std::string(to_view(request.name)) +
                                       "\": rank " + std::to_string(parent) +
                                       (repeated ? " occurs twice" : " is not in the group"));
      }
      global.push_back(ranks_[static_cast<size_t>(parent)]);
      rank = parent == rank_ ? static_cast<int>(i) : rank;
    }
    if (rank < 0) {
      throw Error(CIUIC_INVALID, "gloo: split \"" + std::string(to_view(request.name)) +
                                     "\": rank " + std::to_string(rank_) +
                                     " is not in its own group; ask with count 0 to be in none");
    }
    std::optional<KeyValue> kv;
    if (kv_) {
      kv = kv_->below("split" + std::to_string(number) + "-" + std::to_string(request.ranks[0]));
    }
    const std::chrono::nanoseconds timeout =
        request.timeout_ns <= 0 ? settings_.timeout : std::chrono::nanoseconds(request.timeout_ns);
    return std::make_unique<Gloo>(host(), settings_, std::move(global), rank, std::move(kv),
                                  timeout);
  }

  void health() override { session_->check(); }
  void abort(int32_t code) noexcept override { session_->abort(code); }

  void quiesce(int64_t timeout_ns) override {
    const auto limit =
        timeout_ns < 0 ? settings_.timeout * 2 : std::chrono::nanoseconds(timeout_ns);
    if (!session_->wait_idle(Clock::now() + limit)) {
      throw Error(CIUIC_DEADLINE, "gloo: operations are still under way");
    }
  }

 private:
  static Settings read(const Context& c) {
    return {std::chrono::nanoseconds(c.options().i64("timeout")), c.options().string("interface"),
            static_cast<int>(c.options().i64("threads")), c.local_world() == c.world()};
  }

  void connect(std::chrono::nanoseconds timeout) {
    if (ranks_.size() == 1) {
      session_ = std::make_shared<Session>(host());
      return;
    }
    const auto deadline = Clock::now() + timeout;
    const std::vector<Introduction> all =
        introduce(*kv_, ranks_, rank_, settings_.one_host, timeout);
    const std::string address = pick_address(settings_, all, rank_);
    const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now());
    const GroupOptions group{kv_->below("gloo"),
                             rank_,
                             static_cast<int>(ranks_.size()),
                             address,
                             !is_literal(address),
                             settings_.threads,
                             std::max(left, Milliseconds(1))};
    std::vector<Member> members;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      members.push_back({ranks_[r], all[r].identity});
    }
    session_ =
        std::make_shared<Session>(host(), *kv_, std::move(members), rank_, connect_group(group));
  }

  Settings settings_;
  std::vector<int32_t> ranks_;  // global, by group rank
  int rank_;                    // in the group
  std::optional<KeyValue> kv_;
  int64_t num_splits_ = 0;
  std::shared_ptr<Session> session_;
};

}  // namespace ciuic::plugins::gloo

CIUIC_PLUGINS(ciuic::plugins::gloo::Gloo)
