// SPDX-License-Identifier: MIT
#pragma once

// Rows on their way to experts of other ranks and back, in one layer and micro-batch.
//
// A rank sorts its rows by expert, so those for one rank lie together; what arrives is ordered by
// rank and within a rank by expert, and is sorted by expert once more. Results go the same way back
// and land where the rows came from.
//
// Shapes: R rows that this rank sends, A rows that arrive, L of them sorted by expert and padded.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/expert_exchange.h"
#include "core/model/expert_plan.h"

namespace ciuic::core {

struct ExpertTraffic {
  const ExpertExchange* exchange = nullptr;
  std::vector<int64_t> sent_rows, arrived_rows;  // by rank
  ExpertPlan plan;                               // of the A rows over this rank's experts

  /// Blocks for the counts. `counts`: this rank's rows for each expert; `row_multiple` as
  /// plan_experts takes it, for what arrives.
  ExpertTraffic(const ExpertExchange& through, std::span<const int64_t> counts_E,
                int64_t row_multiple);
  ExpertTraffic() = default;

  [[nodiscard]] int64_t num_sent() const;
  [[nodiscard]] int64_t num_arrived() const;

  /// From arrival order into experts' order, zeros in padding; and back.
  [[nodiscard]] at::Tensor sorted(const at::Tensor& rows_AD) const;
  [[nodiscard]] at::Tensor unsorted(const at::Tensor& rows_LD) const;
  /// The same for one number a row.
  [[nodiscard]] at::Tensor sorted_numbers(const at::Tensor& numbers_A) const;
  [[nodiscard]] at::Tensor unsorted_numbers(const at::Tensor& numbers_L) const;
};

/// Tensors under way. All ranks of the group start the same shipments in the same order.
class Shipment {
 public:
  enum class To { Experts, Tokens };
  /// Each tensor has one row, or one number, for each row of the traffic.
  Shipment(const ExpertTraffic& traffic, To to, std::vector<at::Tensor> tensors);

  /// The tensors that came, in the same order.
  [[nodiscard]] std::vector<at::Tensor> wait();

 private:
  std::vector<at::Tensor> arriving_;
  std::unique_ptr<ExpertExchange::Pending> pending_;
};

}  // namespace ciuic::core
