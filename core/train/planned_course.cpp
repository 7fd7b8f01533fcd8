// SPDX-License-Identifier: MIT
#include "core/train/planned_course.h"

#include <memory>

namespace ciuic::core {
namespace {

StepTotals totals_of(const BatchPlan& plan) { return {plan.samples, plan.tokens, plan.row_tokens}; }

}  // namespace

bool has_growing_batch(const RunPlan& plan) {
  return plan.has_feature(CIUIC_KIND_BATCH_SCHEDULER, "grows");
}

ciuic_batch_request first_request(const RunPlan& plan, int world) {
  ciuic_batch_request request{};
  request.struct_size = sizeof(request);
  request.seed = static_cast<uint64_t>(plan.config.run.seed);
  request.step = 1;
  request.world = static_cast<uint32_t>(world);
  request.row_tokens = static_cast<uint32_t>(plan.config.data.sequence_tokens);
  return request;
}

BatchCourse planned_course(const RunPlan& plan, const BatchSchedulerPlugin& scheduler,
                           const ciuic_batch_request& request, const BatchPlan& first) {
  const RunLength length = RunLength::of(plan.config.run);
  if (!has_growing_batch(plan)) {
    return BatchCourse(length, totals_of(first));
  }
  return BatchCourse(length, [&](uint64_t step, uint64_t samples, uint64_t tokens) {
    ciuic_batch_request at = request;
    at.step = step;
    at.consumed_samples = samples;
    at.consumed_tokens = tokens;
    return totals_of(scheduler.plan(at));
  });
}

BatchCourse planned_course(const RunPlan& plan, int world, Log& log) {
  const ChosenPlugin& chosen = plan.plugin(CIUIC_KIND_BATCH_SCHEDULER);
  Placement placement;
  placement.world = placement.local_world = world;
  const BatchSchedulerPlugin scheduler(
      chosen.found, std::make_unique<HostContext>(chosen.found.descriptor->name, log),
      chosen.options, placement);
  const ciuic_batch_request request = first_request(plan, world);
  return planned_course(plan, scheduler, request, scheduler.plan(request));
}

}  // namespace ciuic::core
