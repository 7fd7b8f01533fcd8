// SPDX-License-Identifier: MIT
//
// Base class of batch scheduler plugins. The contract is in ciuic/abi/batch_scheduler.h.
#pragma once

#include <vector>

#include <ciuic/plugin.hpp>

namespace ciuic {

class BatchScheduler : public Instance {
 public:
  static constexpr uint32_t kind = CIUIC_KIND_BATCH_SCHEDULER;
  using Instance::Instance;

  struct Plan {
    std::vector<ciuic_batch_item> items;  // by rank, micro_batch, row, position
    uint32_t micro_batches = 0;           // walked by every rank
    uint32_t row_tokens = 0;              // padded row length
    uint64_t samples = 0;                 // of the whole world
    uint64_t tokens = 0;
  };

  /// A function of request, options, data lengths and reports, and of nothing else.
  [[nodiscard]] virtual Plan plan(const ciuic_batch_request& request) = 0;
  virtual void observe(uint64_t /*step*/, uint32_t /*attempt*/, ArrayView<ciuic_rank_report>) {}

  static const ciuic_batch_scheduler_vt& table() {
    static const ciuic_batch_scheduler_vt vt = make_table();
    return vt;
  }

 private:
  static ciuic_batch_scheduler_vt make_table() {
    ciuic_batch_scheduler_vt vt{};
    vt.struct_size = sizeof(vt);
    vt.plan = [](ciuic_instance* self, const ciuic_batch_request* request, ciuic_batch_plan* out) {
      auto& b = from_handle<BatchScheduler>(self);
      return guard_running(b, [&] {
        b.last_ = b.plan(*request);
        out->items = to_array(b.last_.items);
        out->micro_batches = b.last_.micro_batches;
        out->row_tokens = b.last_.row_tokens;
        out->samples = b.last_.samples;
        out->tokens = b.last_.tokens;
      });
    };
    vt.observe = [](ciuic_instance* self, uint64_t step, uint32_t attempt, ciuic_array reports) {
      auto& b = from_handle<BatchScheduler>(self);
      return guard_running(b, [&] { b.observe(step, attempt, reports); });
    };
    return vt;
  }

  Plan last_;  // what the last plan shows to the host
};

}  // namespace ciuic
