// SPDX-License-Identifier: MIT
#include "core/bench/storage_counter.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

TEST(StorageCounter, CountsWhatTensorsTakeAndGiveBack) {
  at::Tensor earlier = at::empty({1000}, at::kFloat);
  count_storage();
  const MemoryCounts before = storage_counts();
  {
    const at::Tensor a = at::empty({1000}, at::kFloat);
    const at::Tensor same = a.view({10, 100});
    const at::Tensor nothing = at::empty({0}, at::kFloat);
    const MemoryCounts now = storage_counts() - before;
    EXPECT_EQ(now.allocations, 1);
    EXPECT_GE(now.allocated_bytes, 4000);
    EXPECT_EQ(now.frees, 0);
  }
  EXPECT_EQ((storage_counts() - before).frees, 1);
  earlier.reset();  // taken before the counting began: goes back the old way
  EXPECT_EQ((storage_counts() - before).frees, 1);
}

TEST(HostMemoryCounts, CountWhatPluginsTakeAndGiveBack) {
  const MemoryCounts before = host_memory_counts();
  void* memory = host_memory().allocate({CIUIC_DEVICE_CPU, 0}, 100, 64);
  ASSERT_NE(memory, nullptr);
  MemoryCounts now = host_memory_counts() - before;
  EXPECT_EQ(now.allocations, 1);
  EXPECT_EQ(now.allocated_bytes, 100);
  host_memory().deallocate({CIUIC_DEVICE_CPU, 0}, memory, 100);
  now = host_memory_counts() - before;
  EXPECT_EQ(now.frees, 1);
}

}  // namespace
}  // namespace ciuic::core
