// SPDX-License-Identifier: MIT
//
// The "ciuic.tensor" service on LibTorch: fills, copies with casts, sums, norm statistics,
// products. So a plugin needs no kernels of its own and works on any device.
#pragma once

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>

namespace ciuic::core {

class TensorService {
 public:
  explicit TensorService(const ciuic_host* host);
  TensorService(const TensorService&) = delete;
  TensorService& operator=(const TensorService&) = delete;

  [[nodiscard]] const ciuic_tensor_service& table() const noexcept { return table_; }

 private:
  static ciuic_tensor_service make_table(TensorService* self);

  Host host_;
  ciuic_tensor_service table_;
};

}  // namespace ciuic::core
