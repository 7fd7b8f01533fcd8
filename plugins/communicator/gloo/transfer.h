// SPDX-License-Identifier: MIT
//
// Bytes between two ranks: what every collective that only moves data consists of.
//
// A transfer meets its partner by a slot, a number of 64 bits that both ends compute alone. It
// holds the position in the order of operations and a signature (operation, type, size). Ranks that
// disagree about an operation therefore never meet, and run into the deadline, instead of taking
// bytes for something else.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace ciuic::plugins::gloo {

struct Transfer {
  bool is_send = false;
  int peer = 0;          // group rank
  char* data = nullptr;  // read only when it sends
  int64_t bytes = 0;
};

/// Transfers that run concurrently, and local work after them.
struct Step {
  std::vector<Transfer> transfers;
  std::function<void()> then;  // may be empty; does not fail
};

/// A send or a receive. The n-th one with a tag meets the peer's n-th with that tag.
struct Message {
  Transfer transfer;
  uint32_t tag = 0;
  uint32_t signature = 0;
};

/// Mixes a value into a signature.
[[nodiscard]] constexpr uint32_t mix(uint32_t signature, uint64_t value) {
  uint64_t x = (uint64_t{signature} << 32 | signature) ^ value;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;  // splitmix64's finalizer
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return static_cast<uint32_t>(x ^ (x >> 31));
}

/// Slots, in ranges that Gloo's own collectives and messages do not use. Numbers wrap around, as
/// only those under way must differ.
[[nodiscard]] constexpr uint64_t step_slot(uint64_t operation, uint64_t step, uint32_t signature) {
  return 0x40ULL << 56 | (operation & 0xFFFFF) << 36 | (step & 0xF) << 32 | signature;
}
[[nodiscard]] constexpr uint64_t message_slot(uint32_t tag, uint64_t nth, uint32_t signature) {
  return 0x41ULL << 56 | uint64_t{tag} << 24 | (nth & 0xF) << 20 | (signature & 0xFFFFF);
}
/// The tag of one of Gloo's collectives.
[[nodiscard]] constexpr uint32_t collective_tag(uint64_t operation, uint32_t signature) {
  return static_cast<uint32_t>((operation & 0xFFF) << 20) | (signature & 0xFFFFF);
}

}  // namespace ciuic::plugins::gloo
