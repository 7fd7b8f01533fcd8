// SPDX-License-Identifier: MIT
#include "core/bench/step_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

using ::testing::HasSubstr;

nlohmann::ordered_json found() {
  return nlohmann::ordered_json::parse(R"({
    "run": {"world_size": 2, "threads": 1, "precision": "fp32", "sharding": "ddp",
            "communicator": "gloo", "parameters": 26395008, "active_parameters": 10812672,
            "tokens_per_step": 2048, "sequence_tokens": 256, "warmup_steps": 3, "timed_steps": 10},
    "tokens_per_second": {"median": 1000, "p10": 900, "p90": 1100},
    "step_seconds": {"median": 2.0, "p10": 1.9, "p90": 2.2, "mean": 2.0},
    "gemm": {"dtype": "Float", "sizes": [512, 1024, 2048], "before": [9e10, 8e10, 7e10],
             "after": [9e10, 8e10, 7e10], "flops_per_second": 1.6e11,
             "own_products": [2e11, 2e11, 2e11], "own_flops_per_second": 4e11},
    "memory": {"copy_bytes_per_second": 2.5e10},
    "model": {"flops_per_token": 7e7, "flops_per_second": 8e10, "fraction_of_gemm_rate": 0.5},
    "phase_seconds": {"data": 0.0, "forward": 0.5, "backward": 1.0, "optimizer": 0.3, "rest": 0.1,
                      "communication": 0.1},
    "modules": [{"name": "dense_feed_forward", "forward_seconds": 0.1, "backward_seconds": 0.2,
                 "forward_flops": 1e10, "backward_flops": 2e10, "fraction_of_gemm_rate": 0.9, "least_bytes": 6e8},
                {"name": "experts", "forward_seconds": 0.4, "backward_seconds": 0.8,
                 "forward_flops": 2e10, "backward_flops": 4e10, "fraction_of_gemm_rate": 0.6, "least_bytes": 3.6e9}],
    "tensor_storage": {"system_allocations_per_step": 0.5, "system_bytes_per_step": 2e6,
                       "arena_blocks_per_step": 426.0, "arena_block_bytes_per_step": 5e8,
                       "arena_bytes": 700000000},
    "plugin_memory": {"allocations_per_step": 0.0, "allocated_bytes_per_step": 0.0,
                      "frees_per_step": 0.0},
    "page_faults_per_step": 12.0,
    "peak_rss_bytes": {"sum": 1.6e9, "ranks": [8e8, 8e8]},
    "startup": {"seconds": 1.5, "launch": 0.5, "first_step": 1.0}
  })");
}

TEST(StepReport, ShowsWhatThePhasesAddUpTo) {
  const std::string report = step_report(found());
  EXPECT_THAT(report, HasSubstr("50.0 % of the GEMM rate"));
  EXPECT_THAT(report, HasSubstr("together              2000.00 ms, the mean step 2000.00 ms"));
  EXPECT_THAT(report,
              HasSubstr("backward              1000.00 ms  50.0 %  ####################\n"));
}

TEST(StepReport, ShowsWhatTheSystemGaveForTensors) {
  EXPECT_THAT(step_report(found()),
              HasSubstr("0.5 allocations of 2.00 MB from the system, none given back; 426.0 blocks "
                        "of 500 MB together in an arena of 700 MB"));
}

TEST(StepReport, ShowsWhatEachPartAsksOfMemory) {
  const std::string report = step_report(found());
  EXPECT_THAT(report, HasSubstr("25.0 GB/s copied by each rank"));
  EXPECT_THAT(report, HasSubstr(" 60.0 %         3.0  ####"));  // 3.6 GB in 1.2 s
}

TEST(StepReport, ShowsTheLargestPartFirst) {
  const std::string report = step_report(found());
  ASSERT_THAT(report, HasSubstr("dense feed forward"));
  EXPECT_LT(report.find("  experts "), report.find("  dense feed forward "));
}

}  // namespace
}  // namespace ciuic::core
