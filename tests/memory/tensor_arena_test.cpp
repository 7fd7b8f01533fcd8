// SPDX-License-Identifier: MIT
#include "core/memory/tensor_arena.h"

#include <exception>
#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

TEST(TensorArena, TensorsLiveInIt) {
  TensorArena& arena = TensorArena::install();
  EXPECT_EQ(&arena, &TensorArena::install());
  const BlockPool::Counts before = arena.counts();
  {
    at::Tensor x = at::ones({100, 10});
    EXPECT_EQ(arena.counts().allocations, before.allocations + 1);
    EXPECT_GE(arena.counts().live_bytes, before.live_bytes + 4000);
    x.resize_({2000, 10});  // realloc keeps the values
    EXPECT_EQ(x[99][9].item<float>(), 1);
    const at::Tensor nothing = at::empty({0});
    EXPECT_EQ(nothing.numel(), 0);
  }
  EXPECT_EQ(arena.counts().live_bytes, before.live_bytes);
}

TEST(TensorArena, TooLargeATensorIsAnErrorOfMemory) {
  TensorArena::install();
  try {
    (void)at::empty({int64_t{1} << 42});
    FAIL() << "16 TiB";
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("can't allocate memory"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace ciuic::core
