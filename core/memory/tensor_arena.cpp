// SPDX-License-Identifier: MIT
#include "core/memory/tensor_arena.h"

#include <string>

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

namespace ciuic::core {
namespace {

constexpr size_t kMostBytes = size_t{1} << 40;  // of addresses

TensorArena* installed = nullptr;

}  // namespace

TensorArena::TensorArena() : pool_(kMostBytes) {}

TensorArena& TensorArena::install() {
  // Never destroyed: tensors of static objects may be freed after it would be.
  static TensorArena* const arena = [] {
    installed = new TensorArena();
    c10::SetCPUAllocator(installed, /*priority=*/1);
    return installed;
  }();
  return *arena;
}

c10::DataPtr TensorArena::allocate(size_t bytes) {
  if (bytes == 0) {
    return {nullptr, nullptr, &TensorArena::release, at::Device(at::kCPU)};
  }
  void* data = pool_.allocate(bytes);
  TORCH_CHECK(data != nullptr, "can't allocate memory: ", bytes, " bytes for a tensor beside ",
              pool_.counts().live_bytes, " in use");
  return {data, data, &TensorArena::release, at::Device(at::kCPU)};
}

c10::DeleterFnPtr TensorArena::raw_deleter() const { return &TensorArena::release; }

void TensorArena::release(void* data) { installed->pool_.release(data); }

}  // namespace ciuic::core
