// SPDX-License-Identifier: MIT
//
// Communicator "local": a group of one rank. Every collective is a copy, or nothing when it works
// in place. The smallest complete communicator, so also the one to read first.
//
// A message to oneself is a copy too: its send and its receive, with one tag, must stand in the
// same submit, as there is nobody who could come with the other half later.
//
// Left out: votes and factors.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <ciuic/communicator.hpp>

#include "local_request.h"

namespace ciuic::plugins {
namespace {

class Local final : public Communicator {
 public:
  static constexpr const char* name = "local";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "one rank; collectives are copies";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;

  explicit Local(const Context& context) : Communicator(context) { validate(context); }
  explicit Local(const Host& host) : Communicator(host) {}

  static void validate(const Context& context) {
    if (context.world() != 1) {
      throw Error(CIUIC_INVALID, "communicator local serves one rank, got world=" +
                                     std::to_string(context.world()) +
                                     "; set communicator.plugin = \"auto\"");
    }
  }

  [[nodiscard]] uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                                      ciuic_device device) const override {
    return local::capability_bits(op, reduce, dtype, device);
  }

  /// All requests are checked before the first one is served.
  [[nodiscard]] Work submit(ArrayView<ciuic_collective> collectives,
                            const ciuic_stream* stream) override {
    health();
    std::vector<local::Copy> copies;
    std::vector<const ciuic_collective*> messages;
    for (const ciuic_collective& c : collectives) {
      local::check(c);
      if (c.op == CIUIC_OP_SEND || c.op == CIUIC_OP_RECV) {
        messages.push_back(&c);
      } else if (c.op != CIUIC_OP_BROADCAST && c.op != CIUIC_OP_BARRIER) {
        copies.push_back(local::copy_of(c));
      }
    }
    for (const local::Copy& message : local::pair_messages(messages)) {
      copies.push_back(message);
    }
    for (const local::Copy& copy : copies) {
      local::run(copy, host(), stream);
    }
    return {};
  }

  [[nodiscard]] std::unique_ptr<Communicator> split(const ciuic_split& request) override {
    health();
    if (request.count == 0) {
      return nullptr;
    }
    if (request.count != 1 || request.ranks[0] != 0) {
      throw Error(CIUIC_INVALID, "communicator local has rank 0 alone, got a split of " +
                                     std::to_string(request.count) + " ranks");
    }
    return std::make_unique<Local>(host());
  }

  void health() override {
    if (const int32_t code = aborted_.load(); code != CIUIC_OK) {
      throw Error(code, "the communicator was aborted");
    }
  }
  void abort(int32_t code) noexcept override { aborted_ = code; }

 private:
  std::atomic<int32_t> aborted_{CIUIC_OK};
};

}  // namespace
}  // namespace ciuic::plugins

CIUIC_PLUGINS(ciuic::plugins::Local)
