// SPDX-License-Identifier: MIT
#pragma once

// The two projections that open a SwiGLU, as one.
//
// Their results lie side by side, [rows, 2I]. In a flat bucket up_proj follows gate_proj, so both
// are one [2I, D] matrix and take one product; where a sharding puts them elsewhere, they take two.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/model/gradient.h"

namespace ciuic::core {

class GateUp final {
 public:
  GateUp(const Bound& gate, const Bound& up);

  /// [rows, 2I], uninitialised.
  [[nodiscard]] at::Tensor empty_output(int64_t rows) const;
  /// out [rows, 2I] = [x gate^T | x up^T]
  void forward_out(const at::Tensor& out, const at::Tensor& x) const;
  /// dx [rows, D] = dout [rows, 2I] [gate; up]
  void backward_out(const at::Tensor& dx, const at::Tensor& dout) const;
  /// gate.grad (+)= dout[:, :I]^T x, and so for up.
  void accumulate_gradients(const at::Tensor& dout, const at::Tensor& x) const;
  void accumulate_nothing() const;

 private:
  const Bound& gate_;
  const Bound& up_;
  int64_t width_;
  Bound joint_;  // value and grad are undefined where the two are apart
};

}  // namespace ciuic::core
