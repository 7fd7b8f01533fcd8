// SPDX-License-Identifier: MIT
//
// The norm of the whole gradient, and who is to blame when it is not finite. Each rank looks at its own
// part, range of parameter by range, so that padding never counts; the first of a part's replicas
// speaks for it, and the answers are put together over the world: every logical element counts once.
// Where all ranks hold all gradients, each computes the same answer from the same bits.
//
// Sums are kept in double. In an any_world step they are exact (ciuic/sharding/exact_sum.hpp), so that
// no cut into parts changes a bit.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <ciuic/abi/sharding.h>
#include <ciuic/sharding/exact_sum.hpp>

#include "sharding/gradients.h"
#include "sharding/layout.h"

namespace ciuic::plugins::stages {

class GradientNorm {
 public:
  /// Everything handed in outlives this object.
  GradientNorm(const Host& host, ciuic_device device, const Settings& settings,
               const Layout& layout, const Gradients& gradients, int32_t rank, int32_t world);

  /// Equal on all ranks. Throws UNIMPLEMENTED for a norm that is none of the three.
  void compute(const ciuic_grad_request& request, const ciuic_stream* stream,
               ciuic_grad_stats& out) const;

 private:
  /// A sum (or, of MAX, a maximum) over elements, and how many of them are not finite.
  struct Total {
    double value = 0;
    double non_finite = 0;
  };
  /// Which parameters are asked about.
  class Wanted {
   public:
    explicit Wanted(const ciuic_grad_request& request);
    [[nodiscard]] bool operator()(uint64_t param) const;

   private:
    bool is_all_;
    std::span<const int64_t> params_;
  };
  [[nodiscard]] Total squares(const Wanted& wanted, const ciuic_stream* stream) const;
  [[nodiscard]] Total scanned(const Wanted& wanted, uint32_t norm,
                              const ciuic_stream* stream) const;
  [[nodiscard]] uint64_t first_bad_param(const Wanted& wanted, const ciuic_stream* stream) const;
  [[nodiscard]] int32_t first_bad_rank(uint64_t param, const ciuic_stream* stream) const;
  template <typename Body>
  void each_counted(const Wanted& wanted, const Body& body) const;

  [[nodiscard]] bool is_shared() const { return !is_uniform_ && world_ > 1; }
  void reduce(void* values, ciuic_dtype dtype, int64_t count, uint32_t how) const;

  Host host_;
  const Settings& settings_;
  const Layout& layout_;
  const Gradients& gradients_;
  int32_t rank_, world_;
  TensorOps ops_;
  bool is_uniform_ = true;  // every rank holds every gradient
  Buffer memory_;
  Tensor stats_;
};

}  // namespace ciuic::plugins::stages
