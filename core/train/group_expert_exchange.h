// SPDX-License-Identifier: MIT
//
// The exchange of tokens between experts' ranks over a group: uneven all-to-alls.
#pragma once

#include "core/model/expert_exchange.h"
#include "core/parallel/group.h"

namespace ciuic::core {

class GroupExpertExchange final : public ExpertExchange {
 public:
  /// Throws Failure (Plugin) where the communicator has no uneven all-to-all for `rows`.
  GroupExpertExchange(const Group& group, at::ScalarType rows);

  [[nodiscard]] int64_t num_ranks() const override { return group_.size(); }
  [[nodiscard]] std::vector<int64_t> counts(std::span<const int64_t> rows_E) const override;
  [[nodiscard]] std::unique_ptr<Pending> start(std::vector<Parts> parts,
                                               std::span<const int64_t> in_rows,
                                               std::span<const int64_t> out_rows) const override;

 private:
  const Group& group_;
};

}  // namespace ciuic::core
