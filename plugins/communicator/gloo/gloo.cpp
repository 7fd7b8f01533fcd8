// SPDX-License-Identifier: MIT
//
// Communicator "gloo": LibTorch's ProcessGroupGloo over TCP, for ranks on CPUs. Layers, from the
// contract down:
//   gloo.cpp           options, groups, splits (connect.*: how ranks find each other)
//   request.*          a request is checked (against capabilities.*)
//   collectives.*, messages.*
//                      it becomes calls of Gloo and local arithmetic (reduction.*)
//   session.*          the life of operations (failure.cpp: when they fail; blame.*: whose fault)
//   process_group.*    LibTorch; posted_transfers.*: Gloo's buffers beneath it
// Left out: device memory, votes, factors.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/communicator.hpp>

#include "capabilities.h"
#include "collectives.h"
#include "connect.h"
#include "messages.h"
#include "request.h"

namespace ciuic::plugins::gloo {
namespace {

constexpr Milliseconds kGoodbye{1000};

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

  explicit Gloo(const Context& c) : Communicator(c), settings_(read(c)) {
    group_.rank = c.rank();
    for (int32_t r = 0; r < c.world(); ++r) {
      group_.ranks.push_back(r);
    }
    if (c.world() > 1) {
      // A second instance in the same generation (a swap there and back) must not read the first
      // one's keys.
      const KeyValue kv(host(), "");
      const int64_t instance = kv.add("instances/" + std::to_string(c.rank()), 1);
      group_.kv = kv.below("group" + std::to_string(instance));
    }
    session_ = connect(host(), settings_, group_, settings_.timeout);
  }

  Gloo(const Host& host, Settings settings, Membership group, std::chrono::nanoseconds timeout)
      : Communicator(host),
        settings_(std::move(settings)),
        group_(std::move(group)),
        session_(connect(host, settings_, group_, timeout)) {}

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
    std::vector<Request> messages;
    std::vector<Request> others;
    for (const ciuic_collective& c : collectives) {
      (is_message(c.op) ? messages : others)
          .push_back(check_request(c, group_.rank, static_cast<int>(group_.ranks.size()),
                                   settings_.timeout));
    }
    session_->check();
    std::vector<Operation> operations = plan_messages(messages);
    for (const Request& request : others) {
      operations.push_back(plan_collective(request, host()));
    }
    return session_->submit(std::move(operations));
  }

  std::unique_ptr<Communicator> split(const ciuic_split& request) override {
    session_->check();
    const int64_t number = ++num_splits_;  // equal on all ranks: all of them call
    if (request.count == 0) {
      return nullptr;
    }
    Membership child = child_of(request);
    if (group_.kv) {
      child.kv = group_.kv->below("split" + std::to_string(number) + "-" +
                                  std::to_string(request.ranks[0]));
    }
    const std::chrono::nanoseconds timeout =
        request.timeout_ns <= 0 ? settings_.timeout : std::chrono::nanoseconds(request.timeout_ns);
    return std::make_unique<Gloo>(host(), settings_, std::move(child), timeout);
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

  /// Without its keys.
  [[nodiscard]] Membership child_of(const ciuic_split& request) const {
    const auto refuse = [&](int32_t rank, const char* why) {
      throw Error(CIUIC_INVALID, "gloo: split \"" + std::string(to_view(request.name)) +
                                     "\": rank " + std::to_string(rank) + why);
    };
    Membership child;
    child.rank = -1;
    for (uint32_t i = 0; i < request.count; ++i) {
      const int32_t parent = request.ranks[i];
      if (parent < 0 || static_cast<size_t>(parent) >= group_.ranks.size()) {
        refuse(parent, " is not in the group");
      }
      if (std::count(request.ranks, request.ranks + i, parent) > 0) {
        refuse(parent, " occurs twice");
      }
      child.ranks.push_back(group_.ranks[static_cast<size_t>(parent)]);
      child.rank = parent == group_.rank ? static_cast<int>(i) : child.rank;
    }
    if (child.rank < 0) {
      refuse(group_.rank, " is not in its own group; ask with count 0 to be in none");
    }
    return child;
  }

  Settings settings_;
  Membership group_;
  int64_t num_splits_ = 0;
  std::shared_ptr<Session> session_;
};

}  // namespace ciuic::plugins::gloo

CIUIC_PLUGINS(ciuic::plugins::gloo::Gloo)
