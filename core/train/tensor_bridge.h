// SPDX-License-Identifier: MIT
//
// LibTorch's tensors and the ABI's, one seen as the other. Nothing is copied.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include <ciuic/abi/types.h>
#include <ciuic/view.hpp>

namespace ciuic::core {

/// Throws Failure (Internal) for a dtype that LibTorch lacks.
at::ScalarType to_scalar_type(ciuic_dtype dtype);
ciuic_dtype to_dtype(at::ScalarType type);
ciuic_device to_device(const at::Device& device);

/// A view that does not own; the memory must outlive it.
at::Tensor to_torch(const ciuic_tensor& tensor);

/// A contiguous tensor as the ABI's view; it must outlive it.
Tensor to_abi(const at::Tensor& tensor, uint32_t flags = 0);

}  // namespace ciuic::core
