// SPDX-License-Identifier: MIT
//
// Communicator "hub": ranks of one machine over Unix-domain sockets, with rank 0 of each group in
// the middle. Every rank sends its input to the hub; the hub computes every rank's output and sends
// it back. Slow for many ranks, but short, and the same bits everywhere by construction.
//
// An operation is finished when submit returns. Left out: uneven parts, send and receive, 16-bit
// floats; capabilities says so.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <ciuic/communicator.hpp>

#include "combine.h"
#include "star.h"

namespace hub {
namespace {

using ciuic::Error;

/// What a rank tells the hub before its input; the hub compares all of them.
struct Request {
  uint32_t op, reduce;
  int32_t root;
  ciuic_dtype dtype;
  uint64_t in_bytes, out_bytes;
};
/// What the hub answers before the output. message_bytes of text follow when the code is not OK.
struct Answer {
  int32_t code, peer;
  uint64_t bytes;
};

bool agree(const Request& a, const Request& b) {
  return a.op == b.op && a.reduce == b.reduce && a.root == b.root &&
         ciuic::same(a.dtype, b.dtype) && a.in_bytes == b.in_bytes && a.out_bytes == b.out_bytes;
}

class Hub final : public ciuic::Communicator {
 public:
  static constexpr const char* name = "hub";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "one machine, all traffic through rank 0";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  inline static const auto options = ciuic::option_table(ciuic::option_duration(
      "timeout", 30'000'000'000, 1'000'000, 86'400'000'000'000, "Deadline of one operation"));

  explicit Hub(const ciuic::Context& c)
      : Communicator(c),
        timeout_(c.options().duration("timeout")),
        key_(new_key(host(), c)),
        star_(host(), key_, c.rank(), all_ranks(c.world()), Clock::now() + timeout_) {}

  Hub(const Hub& parent, std::string key, int rank, std::vector<int32_t> ranks)
      : Communicator(parent.host()),
        timeout_(parent.timeout_),
        key_(std::move(key)),
        star_(host(), key_, rank, std::move(ranks), Clock::now() + timeout_) {}

  uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                        ciuic_device device) const override {
    const bool reduces = op == CIUIC_OP_ALL_REDUCE || op == CIUIC_OP_REDUCE_SCATTER;
    const bool moves =
        op == CIUIC_OP_ALL_GATHER || op == CIUIC_OP_BROADCAST || op == CIUIC_OP_BARRIER;
    const bool can = reduces ? can_reduce(reduce, dtype) : moves && reduce == 0;
    return can && device.type == CIUIC_DEVICE_CPU ? CIUIC_COMM_SUPPORTED | CIUIC_COMM_DETERMINISTIC
                                                  : 0;
  }

  ciuic::Work submit(ciuic::ArrayView<ciuic_collective> collectives, const ciuic_stream*) override {
    for (const ciuic_collective& c : collectives) {
      health();
      try {
        run(c);
      } catch (const Error& e) {
        broken_ =
            e.code() == CIUIC_UNIMPLEMENTED ? "" : e.what();  // the wires may hold half a message
        throw;
      }
    }
    return {};
  }

  std::unique_ptr<ciuic::Communicator> split(const ciuic_split& request) override {
    const std::string key = key_ + "/" + std::to_string(splits_++);  // in step on all ranks
    if (request.count == 0) {
      return nullptr;
    }
    std::vector<int32_t> global;
    int own = -1;
    for (uint32_t i = 0; i < request.count; ++i) {
      own = request.ranks[i] == star_.rank() ? static_cast<int>(i) : own;
      global.push_back(star_.ranks()[static_cast<size_t>(request.ranks[i])]);
    }
    if (own < 0) {
      throw Error(CIUIC_INVALID, "hub: a split must hold the rank that asks for it");
    }
    return std::make_unique<Hub>(*this, key + "/" + std::to_string(global[0]), own, global);
  }

  void health() override {
    star_.check_not_aborted();
    if (!broken_.empty()) {
      throw Error(CIUIC_ABORTED, "hub: an earlier operation failed: " + broken_);
    }
  }
  void abort(int32_t code) noexcept override { star_.abort(code); }

 private:
  /// Every rank counts the groups that it has joined, so a second one in the same run meets under a
  /// key of its own.
  static std::string new_key(const ciuic::Host& host, const ciuic::Context& c) {
    const std::string base = "hub/" + std::to_string(c.generation()) + "/";
    const std::string counter = base + "groups-of-" + std::to_string(c.rank());
    const auto& kv = host.service<ciuic_kv_service>("ciuic.kv");
    int64_t number = 0;
    host.check(kv.add(kv.ctx, ciuic::to_str(counter), 1, &number));
    return base + std::to_string(number);
  }
  static std::vector<int32_t> all_ranks(int32_t world) {
    std::vector<int32_t> ranks;
    for (int32_t r = 0; r < world; ++r) {
      ranks.push_back(r);
    }
    return ranks;
  }

  void run(const ciuic_collective& c) {
    const ciuic_tensor* some = c.in != nullptr ? c.in : c.out;
    const ciuic_dtype dtype = some == nullptr ? ciuic::kU8 : some->t.dtype;
    if (capabilities(c.op, c.reduce, dtype, {CIUIC_DEVICE_CPU, 0}) == 0 || c.flags != 0 ||
        c.vote != 0 || c.in_counts != nullptr || c.out_counts != nullptr ||
        (c.factor != 0 && c.factor != 1)) {
      throw Error(CIUIC_UNIMPLEMENTED, "hub: this operation is not offered (see capabilities)");
    }
    const ciuic_tensor* in = c.op == CIUIC_OP_BROADCAST ? c.out : c.in;
    const Request request{
        c.op,
        c.reduce,
        c.op == CIUIC_OP_BROADCAST ? c.peer : 0,
        dtype,
        in == nullptr ? 0 : static_cast<uint64_t>(ciuic::tensor_bytes(*in)),
        c.out == nullptr ? 0 : static_cast<uint64_t>(ciuic::tensor_bytes(*c.out))};
    const Clock::time_point deadline = deadline_of(c.timeout_ns);
    void* out = c.out == nullptr ? nullptr : ciuic::tensor_data(*c.out);
    const void* input = in == nullptr ? nullptr : ciuic::tensor_data(*in);
    if (star_.rank() == 0) {
      serve(request, input, out, deadline);
    } else {
      ask(request, input, out, deadline);
    }
  }

  [[nodiscard]] Clock::time_point deadline_of(int64_t timeout_ns) const {
    const auto limit = timeout_ns == 0  ? timeout_
                       : timeout_ns < 0 ? std::chrono::nanoseconds(std::chrono::hours(24 * 365))
                                        : std::chrono::nanoseconds(timeout_ns);
    return Clock::now() + limit;
  }

  // ---- any other rank ----

  void ask(const Request& request, const void* in, void* out, Clock::time_point deadline) const {
    star_.send(0, &request, sizeof(request), deadline);
    star_.send(0, in, request.in_bytes, deadline);
    Answer answer{};
    star_.receive(0, &answer, sizeof(answer), deadline);
    if (answer.code != CIUIC_OK) {
      std::string text(answer.bytes, '\0');
      star_.receive(0, text.data(), text.size(), deadline);
      throw Error(answer.code, text, answer.peer);
    }
    star_.receive(0, out, request.out_bytes, deadline);
  }

  // ---- the hub ----

  void serve(const Request& own, const void* in, void* out, Clock::time_point deadline) const {
    std::vector<Bytes> inputs(static_cast<size_t>(star_.size()));
    try {
      inputs[0].assign(static_cast<const char*>(in), static_cast<const char*>(in) + own.in_bytes);
      for (int peer = 1; peer < star_.size(); ++peer) {
        inputs[static_cast<size_t>(peer)] = collect(own, peer, deadline);
      }
    } catch (const Error& e) {
      tell_all(e);
      throw;
    }
    const Bytes shared = combine(own, inputs);
    for (int peer = 1; peer < star_.size(); ++peer) {
      const Answer answer{CIUIC_OK, -1, own.out_bytes};
      star_.send(peer, &answer, sizeof(answer), deadline);
      star_.send(peer, part(own, shared, peer), own.out_bytes, deadline);
    }
    if (own.out_bytes != 0) {
      std::memcpy(out, part(own, shared, 0), own.out_bytes);
    }
  }

  [[nodiscard]] Bytes collect(const Request& own, int peer, Clock::time_point deadline) const {
    Request theirs{};
    star_.receive(peer, &theirs, sizeof(theirs), deadline);
    if (!agree(own, theirs)) {
      const int32_t global = star_.ranks()[static_cast<size_t>(peer)];
      throw Error(CIUIC_INVALID,
                  "hub: rank " + std::to_string(global) + " asks for operation " +
                      std::to_string(theirs.op) + " with " + std::to_string(theirs.in_bytes) +
                      " bytes, rank " + std::to_string(star_.ranks()[0]) + " for " +
                      std::to_string(own.op) + " with " + std::to_string(own.in_bytes),
                  global);
    }
    Bytes in(theirs.in_bytes);
    star_.receive(peer, in.data(), in.size(), deadline);
    return in;
  }

  /// What the ranks get: all of it, or for REDUCE_SCATTER their part of it.
  static Bytes combine(const Request& request, std::vector<Bytes>& inputs) {
    switch (request.op) {
      case CIUIC_OP_ALL_REDUCE:
      case CIUIC_OP_REDUCE_SCATTER:
        return reduce_all(request.reduce, request.dtype, inputs);
      case CIUIC_OP_BROADCAST:
        return std::move(inputs[static_cast<size_t>(request.root)]);
      default: {  // ALL_GATHER; BARRIER carries nothing
        Bytes all;
        for (const Bytes& in : inputs) {
          all.insert(all.end(), in.begin(), in.end());
        }
        return all;
      }
    }
  }
  static const char* part(const Request& request, const Bytes& shared, int rank) {
    const size_t begin =
        request.op == CIUIC_OP_REDUCE_SCATTER ? static_cast<size_t>(rank) * request.out_bytes : 0;
    return shared.data() + begin;
  }

  /// Nobody waits for a group that has failed. Who is gone himself hears nothing.
  void tell_all(const Error& error) const {
    const std::string text = error.what();
    const Answer answer{error.code(), error.peer(), text.size()};
    const Clock::time_point soon = Clock::now() + std::chrono::milliseconds(500);
    for (int peer = 1; peer < star_.size(); ++peer) {
      try {
        star_.send(peer, &answer, sizeof(answer), soon);
        star_.send(peer, text.data(), text.size(), soon);
      } catch (const Error& e) {
        host().debug(std::string("hub: could not tell a peer: ") + e.what());
      }
    }
  }

  std::chrono::nanoseconds timeout_;
  std::string key_;
  Star star_;
  std::string broken_;
  int splits_ = 0;
};

}  // namespace
}  // namespace hub

CIUIC_PLUGINS(hub::Hub)
