// SPDX-License-Identifier: MIT
//
// The host's view of a batch scheduler plugin. A plan is copied out, so it outlives the next call.
#pragma once

#include <vector>

#include <ciuic/abi/batch_scheduler.h>
#include <ciuic/view.hpp>

#include "core/plugin/instance.h"
#include "core/plugin/shown_array.h"

namespace ciuic::core {

struct BatchPlan {
  std::vector<ciuic_batch_item> items;
  uint32_t micro_batches = 0;
  uint32_t row_tokens = 0;
  uint64_t samples = 0;
  uint64_t tokens = 0;
};

class BatchSchedulerPlugin {
 public:
  template <typename... Args>
  explicit BatchSchedulerPlugin(Args&&... args) : instance_(std::forward<Args>(args)...) {}

  [[nodiscard]] const Instance& instance() const noexcept { return instance_; }

  [[nodiscard]] BatchPlan plan(const ciuic_batch_request& request) const {
    ciuic_batch_plan raw{};
    raw.struct_size = sizeof(raw);
    instance_.check(vt().plan(instance_.self(), &request, &raw), "batch_scheduler.plan");
    BatchPlan plan{{}, raw.micro_batches, raw.row_tokens, raw.samples, raw.tokens};
    for (const ciuic_batch_item& item :
         shown_array<ciuic_batch_item>(raw.items, instance_, "batch_scheduler.plan")) {
      plan.items.push_back(item);
    }
    return plan;
  }
  void observe(uint64_t step, uint32_t attempt,
               const std::vector<ciuic_rank_report>& reports) const {
    instance_.check(vt().observe(instance_.self(), step, attempt, to_array(reports)),
                    "batch_scheduler.observe");
  }

 private:
  [[nodiscard]] const ciuic_batch_scheduler_vt& vt() const noexcept {
    return instance_.vt<ciuic_batch_scheduler_vt>();
  }

  Instance instance_;
};

}  // namespace ciuic::core
