// SPDX-License-Identifier: MIT
//
// What lies in the memory of a group. One rank makes it; all map it, each at its own address, so it
// holds no pointers.
//
//   RankState [world]                    counters, bells, last words
//   Header    [world][2], Part [world]   what each rank asks for, of the last two operations
//   in slots  [world][3]                 copies of ordinary memory, for the peers to read
//   sum slots [world][3]                 a rank's part of a sum, for the peers to read
//   Channel   [world][world]             messages, by sender and receiver
//
// Pages that nobody touches take no memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <ciuic/abi/types.h>

namespace ciuic::plugins::shm {

constexpr size_t kLine = 128;  // two cache lines: neighbours are fetched in pairs
constexpr size_t kPage = 4096;
constexpr int64_t kSlotBytes = 2 << 20;
// A chunk of ranks that have a core each stays in the caches. Where cores are shared, every meeting of
// the ranks costs the scheduler's time: fewer and larger chunks.
constexpr int64_t kCachedChunkBytes = 512 << 10;
constexpr int kNumSlots = 3;
constexpr size_t kWords = 480;  // of an error

enum class Life : uint32_t { Absent, Here, Left, Failed };

/// Written by its own rank alone, but for the bell.
struct RankState {
  alignas(kLine) std::atomic<uint64_t> stages{0};  // that this rank has finished
  alignas(kLine) std::atomic<uint32_t> bell{0};    // rung for it; the futex that it sleeps on
  std::atomic<int32_t> sleepers{0};                // threads of it that do
  alignas(kLine) std::atomic<Life> life{Life::Absent};
  std::atomic<uint32_t> has_spoken{0};  // 1: code, culprit and text are being written; 2: are there
  int32_t code = 0;                     // why it failed
  int32_t culprit = -1;                 // a global rank
  char text[kWords] = {};
};

/// Where memory of memory_alloc lies; segment 0: in ordinary memory, which peers cannot see.
struct Address {
  uint64_t segment = 0;
  int64_t offset = 0;
  uint64_t bytes = 0;  // of the segment
  int32_t pid = 0;
  int32_t descriptor = -1;
};

/// What a rank asks for. Headers of two operations in a row lie in two places.
struct Header {
  uint64_t number = 0;     // of the operation
  uint64_t signature = 0;  // of what must be equal on all ranks
  int64_t largest_part = 0;
  Address in, out;
  char what[160] = {};
};
struct HeaderPart {  // of its input, by receiving rank
  int64_t begin = 0;
  int64_t bytes = 0;
};

// ---- messages: see messages.h ----

constexpr int kOffers = 16;
constexpr int64_t kEagerBytes = 4096;
constexpr int kCells = 2;
constexpr int64_t kCellBytes = 64 << 10;

enum class OfferState : uint32_t { Free, Offered, Wanted };

struct Offer {
  std::atomic<OfferState> state{OfferState::Free};
  uint32_t tag = 0;
  uint64_t number = 0;  // order of sending
  ciuic_dtype dtype{};
  int64_t bytes = 0;
};

struct Channel {
  Offer offers[kOffers];
  // Offers that were made, by the sender, each counted after its state: who has read the count sees
  // all of them, where a look through the places could miss one that comes behind it.
  std::atomic<uint64_t> num_offered{0};
  alignas(kLine) std::atomic<uint64_t> written{0};  // cells, by the sender
  alignas(kLine) std::atomic<uint64_t> read{0};     // by the receiver
  std::atomic<uint32_t> active{0};  // 1 + the offer that goes through the cells; 0: none
  alignas(kPage) char eager[kOffers][kEagerBytes];
  char cells[kCells][kCellBytes];
};

}  // namespace ciuic::plugins::shm
