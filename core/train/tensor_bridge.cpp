// SPDX-License-Identifier: MIT
#include "core/train/tensor_bridge.h"

#include <array>

#include <ATen/ops/from_blob.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

struct DtypePair {
  ciuic_dtype abi;
  at::ScalarType torch;
};

constexpr std::array<DtypePair, 12> kDtypes{{
    {{CIUIC_DTYPE_FLOAT, 64, 1}, at::kDouble},
    {{CIUIC_DTYPE_FLOAT, 32, 1}, at::kFloat},
    {{CIUIC_DTYPE_FLOAT, 16, 1}, at::kHalf},
    {{CIUIC_DTYPE_BFLOAT, 16, 1}, at::kBFloat16},
    {{CIUIC_DTYPE_INT, 64, 1}, at::kLong},
    {{CIUIC_DTYPE_INT, 32, 1}, at::kInt},
    {{CIUIC_DTYPE_INT, 16, 1}, at::kShort},
    {{CIUIC_DTYPE_INT, 8, 1}, at::kChar},
    {{CIUIC_DTYPE_UINT, 8, 1}, at::kByte},
    {{CIUIC_DTYPE_BOOL, 8, 1}, at::kBool},
    {{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1}, at::kFloat8_e4m3fn},
    {{CIUIC_DTYPE_FLOAT8_E5M2, 8, 1}, at::kFloat8_e5m2},
}};

at::Device to_torch_device(ciuic_device device) {
  return device.type == CIUIC_DEVICE_CUDA ? at::Device(at::kCUDA, static_cast<int8_t>(device.id))
                                          : at::Device(at::kCPU);
}

}  // namespace

at::ScalarType to_scalar_type(ciuic_dtype dtype) {
  for (const DtypePair& pair : kDtypes) {
    if (same(pair.abi, dtype)) {
      return pair.torch;
    }
  }
  throw Failure(ExitCode::Internal, "LibTorch has no type for " + dtype_name(dtype));
}

ciuic_dtype to_dtype(at::ScalarType type) {
  for (const DtypePair& pair : kDtypes) {
    if (pair.torch == type) {
      return pair.abi;
    }
  }
  throw Failure(ExitCode::Internal,
                std::string("the plugin ABI has no type for ") + at::toString(type));
}

ciuic_device to_device(const at::Device& device) {
  return device.is_cuda() ? ciuic_device{CIUIC_DEVICE_CUDA, device.index()}
                          : ciuic_device{CIUIC_DEVICE_CPU, 0};
}

at::Tensor to_torch(const ciuic_tensor& t) {
  const at::IntArrayRef sizes(t.t.shape, static_cast<size_t>(t.t.ndim));
  const at::IntArrayRef strides(t.t.strides, static_cast<size_t>(t.t.ndim));
  const auto options =
      at::TensorOptions().dtype(to_scalar_type(t.t.dtype)).device(to_torch_device(t.t.device));
  return at::from_blob(tensor_data(t), sizes, strides, options);
}

Tensor to_abi(const at::Tensor& tensor, uint32_t flags) {
  if (!tensor.is_contiguous()) {
    throw Failure(ExitCode::Internal, "a tensor that goes to a plugin is not contiguous");
  }
  return Tensor(tensor.data_ptr(), to_dtype(tensor.scalar_type()), tensor.sizes().vec(),
                to_device(tensor.device()), flags);
}

}  // namespace ciuic::core
