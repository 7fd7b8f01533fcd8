// SPDX-License-Identifier: MIT
//
// The nearest orthogonal matrix, nearly: five Newton-Schulz iterations of the quintic of Keller
// Jordan's Muon, which take all singular values of a matrix into about [0.7, 1.2]. Products run
// through the host's "ciuic.tensor" service, in fp32.
#pragma once

#include <cstdint>

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>

namespace ciuic::plugins::muon {

/// Memory and products for matrices of up to so many elements; of a call, so that calls may be
/// concurrent.
class Orthogonaliser {
 public:
  /// `largest`: elements of the largest matrix; `largest_side`: the largest shorter side.
  Orthogonaliser(const Host& host, const ciuic_tensor_service& service, int64_t largest,
                 int64_t largest_side);

  /// Where to put the matrix, row-major.
  [[nodiscard]] float* input() const { return static_cast<float*>(x_.data()); }
  /// The result for what stands in input(); valid until the next call.
  const float* run(int64_t rows, int64_t columns);

 private:
  void iterate(int64_t rows, int64_t columns);
  void multiply(const Tensor& a, const Tensor& b, const Tensor& out, double alpha, double beta,
                uint32_t flags) const;

  Host host_;
  const ciuic_tensor_service& service_;
  Buffer x_, next_, square_, polynomial_;
};

}  // namespace ciuic::plugins::muon
