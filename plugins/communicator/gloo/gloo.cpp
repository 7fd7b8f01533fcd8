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

#include "collectives.h"
#include "communicator/capabilities.h"
#include "communicator/request.h"
#include "connect.h"
#include "messages.h"

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

  explicit Gloo(const Context& c)
      : Communicator(c), settings_(read(c)), group_(whole_world(host(), c.rank(), c.world())) {
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
          .push_back(check_request(name, c, group_.rank, static_cast<int>(group_.ranks.size()),
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
    Membership child = child_of(group_, request, number, name);
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

  Settings settings_;
  Membership group_;
  int64_t num_splits_ = 0;
  std::shared_ptr<Session> session_;
};

}  // namespace ciuic::plugins::gloo

CIUIC_PLUGINS(ciuic::plugins::gloo::Gloo)
