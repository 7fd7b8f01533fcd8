// SPDX-License-Identifier: MIT
//
// The memory of tensors on CPUs: LibTorch's allocator, on a BlockPool.
#pragma once

#include <c10/core/Allocator.h>

#include "core/memory/block_pool.h"

namespace ciuic::core {

class TensorArena final : public c10::Allocator {
 public:
  /// In the place of LibTorch's allocator for the rest of the process; the same at each call. Before
  /// the first tensor that should live here.
  static TensorArena& install();

  [[nodiscard]] BlockPool::Counts counts() const { return pool_.counts(); }

  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  TensorArena();
  static void release(void* data);

  BlockPool pool_;
};

}  // namespace ciuic::core
