// SPDX-License-Identifier: MIT
#include "core/model/expert_traffic.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/ops/empty.h>

#include "core/model/kernels/expert_rows.h"

namespace ciuic::core {
namespace {

int64_t sum(std::span<const int64_t> values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

/// Consecutive values added up into `parts` equal parts.
std::vector<int64_t> sums_by_part(std::span<const int64_t> values, int64_t parts) {
  const size_t width = values.size() / static_cast<size_t>(parts);
  std::vector<int64_t> sums;
  for (size_t part = 0; part < static_cast<size_t>(parts); ++part) {
    sums.push_back(sum(values.subspan(part * width, width)));
  }
  return sums;
}

/// The expert of each row that arrives, of rows that come by rank and within a rank by expert.
at::Tensor experts_of(std::span<const int64_t> counts_SE, int64_t num_experts) {
  at::Tensor experts = at::empty({sum(counts_SE), 1}, at::kInt);
  auto* out = experts.mutable_data_ptr<int32_t>();
  for (size_t i = 0; i < counts_SE.size(); ++i) {
    const auto expert = static_cast<int32_t>(static_cast<int64_t>(i) % num_experts);
    out = std::fill_n(out, counts_SE[i], expert);
  }
  return experts;
}

}  // namespace

ExpertTraffic::ExpertTraffic(const ExpertExchange& through, std::span<const int64_t> counts_E,
                             int64_t row_multiple)
    : exchange(&through) {
  const int64_t ranks = through.num_ranks();
  const std::vector<int64_t> counts_SE = through.counts(counts_E);
  sent_rows = sums_by_part(counts_E, ranks);
  arrived_rows = sums_by_part(counts_SE, ranks);
  const int64_t num_experts = static_cast<int64_t>(counts_E.size()) / ranks;
  plan = plan_experts(experts_of(counts_SE, num_experts), num_experts, row_multiple);
}

int64_t ExpertTraffic::num_sent() const { return sum(sent_rows); }
int64_t ExpertTraffic::num_arrived() const { return sum(arrived_rows); }

at::Tensor ExpertTraffic::sorted(const at::Tensor& rows_AD) const {
  return kernels::gather_rows(rows_AD, plan.token_of_row_R);
}
at::Tensor ExpertTraffic::unsorted(const at::Tensor& rows_LD) const {
  return kernels::gather_rows(rows_LD, plan.row_of_choice_NK.flatten());
}
at::Tensor ExpertTraffic::sorted_numbers(const at::Tensor& numbers_A) const {
  return kernels::choices_to_rows(numbers_A.unsqueeze(1), plan.row_of_choice_NK, plan.num_rows());
}
at::Tensor ExpertTraffic::unsorted_numbers(const at::Tensor& numbers_L) const {
  return kernels::rows_to_choices(numbers_L, plan.row_of_choice_NK).flatten();
}

Shipment::Shipment(const ExpertTraffic& traffic, To to, std::vector<at::Tensor> tensors) {
  const bool to_experts = to == To::Experts;
  const int64_t rows = to_experts ? traffic.num_arrived() : traffic.num_sent();
  std::vector<ExpertExchange::Parts> parts;
  for (const at::Tensor& sent : tensors) {
    std::vector<int64_t> shape = sent.sizes().vec();
    shape[0] = rows;
    arriving_.push_back(at::empty(shape, sent.options()));
    parts.push_back({sent.contiguous(), arriving_.back()});
  }
  pending_ = traffic.exchange->start(std::move(parts),
                                     to_experts ? traffic.sent_rows : traffic.arrived_rows,
                                     to_experts ? traffic.arrived_rows : traffic.sent_rows);
}

std::vector<at::Tensor> Shipment::wait() {
  pending_->wait();
  return std::move(arriving_);
}

}  // namespace ciuic::core
