// SPDX-License-Identifier: MIT
#pragma once

// How the tokens of one rank reach experts on others, as a mixture of experts sees it.
//
// A layer's E routed experts are shared out over the S ranks of an expert group: rank s has experts
// [s E/S, (s+1) E/S). Every rank of the group makes the same calls in the same order, with tokens
// or without. No token is dropped and no place is reserved: parts are as long as routing makes them.
// Source: GShard, arXiv:2006.16668, section 3.3, without its capacity.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace ciuic::core {

class ExpertExchange {
 public:
  virtual ~ExpertExchange() = default;

  [[nodiscard]] virtual int64_t num_ranks() const = 0;

  /// In: how many rows this rank has for each of the E experts. Out, [S, E/S]: how many each rank
  /// has for each of this rank's experts. Blocks.
  [[nodiscard]] virtual std::vector<int64_t> counts(std::span<const int64_t> rows_E) const = 0;

  /// One tensor on its way: `out` rows are written when wait() returns.
  struct Parts {
    at::Tensor in;   // [rows for rank 0, for rank 1, ...], contiguous
    at::Tensor out;  // [rows from rank 0, from rank 1, ...], contiguous
  };
  class Pending {
   public:
    virtual ~Pending() = default;
    virtual void wait() = 0;
  };
  /// Starts an exchange of rows; `in_rows` and `out_rows`: how many for and from each rank. What
  /// comes between this call and wait() runs beside it.
  [[nodiscard]] virtual std::unique_ptr<Pending> start(std::vector<Parts> parts,
                                                       std::span<const int64_t> in_rows,
                                                       std::span<const int64_t> out_rows) const = 0;
};

}  // namespace ciuic::core
