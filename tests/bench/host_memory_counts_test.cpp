// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "core/plugin/host_context.h"

namespace ciuic::core {
namespace {

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
