// SPDX-License-Identifier: MIT
#include "core/memory/block_pool.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

/// Blocks that are filled with a value each and looked at before they are freed.
class FilledBlocks {
 public:
  explicit FilledBlocks(BlockPool& pool) : pool_(pool) {}
  ~FilledBlocks() {
    while (!blocks_.empty()) {
      release(0);
    }
  }

  void add(size_t bytes) {
    auto* data = static_cast<unsigned char*>(pool_.allocate(bytes));
    ASSERT_NE(data, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % BlockPool::kAlignment, 0U);
    const auto value = static_cast<unsigned char>(next_++);
    std::memset(data, value, bytes);
    blocks_.push_back({data, bytes, value});
  }
  void release(size_t index) {
    const Filled b = blocks_[index];
    for (size_t i = 0; i < b.bytes; ++i) {
      ASSERT_EQ(b.data[i], b.value) << "byte " << i << " of " << b.bytes;
    }
    pool_.release(b.data);
    blocks_[index] = blocks_.back();
    blocks_.pop_back();
  }
  [[nodiscard]] size_t size() const { return blocks_.size(); }

 private:
  struct Filled {
    unsigned char* data;
    size_t bytes;
    unsigned char value;
  };
  BlockPool& pool_;
  std::vector<Filled> blocks_;
  unsigned next_ = 1;
};

TEST(BlockPool, BlocksOfAnySizeKeepTheirBytes) {
  BlockPool pool(256 * kMiB);
  std::mt19937 random(7);
  {
    FilledBlocks blocks(pool);
    for (int i = 0; i < 4000; ++i) {
      if (blocks.size() < 40 || random() % 2 == 0) {
        blocks.add(random() % (size_t{1} << (random() % 17)));
      } else {
        blocks.release(random() % blocks.size());
      }
      if (::testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }
  const BlockPool::Counts counts = pool.counts();
  EXPECT_EQ(counts.live_bytes, 0);
  EXPECT_EQ(counts.allocations, counts.frees);
  // Everything free is one block again.
  void* whole = pool.allocate(static_cast<size_t>(counts.held_bytes) * 7 / 8);
  EXPECT_NE(whole, nullptr);
  EXPECT_EQ(pool.counts().growths, counts.growths);
  pool.release(whole);
}

TEST(BlockPool, TheSecondRoundTakesNothingFromTheSystem) {
  BlockPool pool(1024 * kMiB);
  const auto round = [&](unsigned seed) {
    std::mt19937 random(seed);
    FilledBlocks blocks(pool);
    for (int i = 0; i < 200; ++i) {
      blocks.add(1000 + random() % 200000);
      if (i % 3 == 0) {
        blocks.release(random() % blocks.size());
      }
    }
  };
  round(1);
  const int64_t growths = pool.counts().growths;
  EXPECT_GT(growths, 0);
  round(1);
  EXPECT_EQ(pool.counts().growths, growths);
}

TEST(BlockPool, TheLastBlockMayFitThoughItsClassHasSmallerOnes) {
  BlockPool pool(64 * kMiB);
  pool.release(pool.allocate(64));
  const auto all = static_cast<size_t>(pool.counts().held_bytes);
  void* whole = pool.allocate(all - BlockPool::kAlignment - 64);
  EXPECT_NE(whole, nullptr);
  EXPECT_EQ(pool.counts().growths, 1);
  pool.release(whole);
}

TEST(BlockPool, NoMemoryIsNullAndNothingIsLost) {
  BlockPool pool(64 * kMiB);
  void* half = pool.allocate(40 * kMiB);
  ASSERT_NE(half, nullptr);
  EXPECT_EQ(pool.allocate(40 * kMiB), nullptr);
  EXPECT_EQ(pool.allocate(~size_t{0} / 2), nullptr);
  pool.release(half);
  void* again = pool.allocate(60 * kMiB);  // the free block and what is not grown into yet
  EXPECT_NE(again, nullptr);
  pool.release(again);
  pool.release(nullptr);
}

TEST(BlockPool, ThreadsShareIt) {
  BlockPool pool(256 * kMiB);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      std::mt19937 random(t);
      FilledBlocks blocks(pool);
      for (int i = 0; i < 2000; ++i) {
        if (blocks.size() < 8 || random() % 2 == 0) {
          blocks.add(random() % 5000);
        } else {
          blocks.release(random() % blocks.size());
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(pool.counts().live_bytes, 0);
}

}  // namespace
}  // namespace ciuic::core
