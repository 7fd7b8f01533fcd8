// SPDX-License-Identifier: MIT
#include "plugins/communicator/shm/heap.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include <ciuic/error.hpp>

namespace ciuic::plugins::shm {
namespace {

TEST(ShmHeap, PeersSeeWhatItGivesOut) {
  Heap owner;
  Heap peer;
  char* memory = static_cast<char*>(owner.alloc(10'000));
  std::strcpy(memory + 5000, "seen");
  const Address address = owner.find(memory + 5000, 5);
  ASSERT_NE(address.segment, 0U);
  EXPECT_STREQ(peer.peer_memory(address), "seen");
  EXPECT_NE(peer.peer_memory(address), memory + 5000) << "a mapping of its own";
}

TEST(ShmHeap, OrdinaryMemoryHasNoAddress) {
  Heap heap;
  char own[100];
  EXPECT_EQ(heap.find(own, 100).segment, 0U);
  char* memory = static_cast<char*>(heap.alloc(4096));
  EXPECT_EQ(heap.find(memory, 4097).segment, 0U) << "longer than the piece";
  EXPECT_EQ(heap.find(memory - 1, 1).segment, 0U);
  EXPECT_TRUE(heap.free(memory));
  EXPECT_FALSE(heap.free(memory));
  EXPECT_EQ(heap.find(memory, 1).segment, 0U);
}

TEST(ShmHeap, FreedMemoryIsNotOpenedAgain) {
  Heap owner;
  Heap peer;
  void* memory = owner.alloc(100);
  const Address address = owner.find(static_cast<char*>(memory), 100);
  owner.free(memory);
  void* next = owner.alloc(100);  // most likely with the same descriptor
  EXPECT_THROW((void)peer.peer_memory(address), Error);
  EXPECT_NE(owner.find(static_cast<char*>(next), 100).segment, address.segment);
}

TEST(ShmHeap, WhatIsTooMuchIsRefused) {
  Heap heap;
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 4096, size_t{1} << 62}) {
    try {
      heap.alloc(bytes);
      ADD_FAILURE() << bytes << " bytes were given out";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), CIUIC_EXHAUSTED) << e.what();
    }
  }
}

/// In a child, as it lowers a limit: what SIGXFSZ does by default would end it.
TEST(ShmHeap, LimitOfFileSizesIsAnErrorNotASignal) {
  const auto alloc_beyond_the_limit = [] {
    const rlimit limit{8192, 8192};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      Heap().alloc(100'000);
    } catch (const Error& e) {
      std::fputs(e.what(), stderr);
      std::exit(e.code() == CIUIC_EXHAUSTED ? 0 : 1);
    }
    std::exit(2);
  };
  EXPECT_EXIT(alloc_beyond_the_limit(), ::testing::ExitedWithCode(0),
              "limit of a file's size is 8192");
}

}  // namespace
}  // namespace ciuic::plugins::shm
