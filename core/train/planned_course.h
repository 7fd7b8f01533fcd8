// SPDX-License-Identifier: MIT
//
// The course of a run as its batch scheduler plans it. A scheduler with the feature "grows" is
// asked ahead; for any other every step is taken to be as the first, which is asked once.
#pragma once

#include "core/plugin/batch_scheduler.h"
#include "core/train/batch_course.h"
#include "core/train/run_plan.h"

namespace ciuic::core {

/// Does the run's scheduler say that its batches may grow?
bool has_growing_batch(const RunPlan& plan);

/// What every request of a run says; its step is 1. Items of other ranks than 0 may be missing.
ciuic_batch_request first_request(const RunPlan& plan, int world);

/// Of a live scheduler. `first` is its plan of step 1.
BatchCourse planned_course(const RunPlan& plan, const BatchSchedulerPlugin& scheduler,
                           const ciuic_batch_request& request, const BatchPlan& first);

/// Before a run: with an instance of its own, and without data. Runs code of the plugin.
BatchCourse planned_course(const RunPlan& plan, int world, Log& log);

}  // namespace ciuic::core
