// SPDX-License-Identifier: MIT
//
// Plans of consecutive steps, each followed by its report.
#include <ciuic/abi/batch_scheduler.h>
#include <ciuic/testing/guarded_struct.hpp>

#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

constexpr uint32_t kRowTokens = 16;
constexpr uint64_t kEpochSamples = 64;  // the bench's data

class BatchSchedulerExercise final : public Exercise {
 public:
  using Exercise::Exercise;

  std::string round(const Instance& b, uint64_t number) override {
    const auto& vt = b.table<ciuic_batch_scheduler_vt>();
    const GuardedStruct<ciuic_batch_request> request(next_request(number + 1));
    const GuardedStruct<ciuic_batch_plan> plan;
    b.calls().check("plan", [&] { return vt.plan(b.self(), request.get(), plan.get()); });
    samples_ += plan->samples;
    tokens_ += plan->tokens;
    std::string results;
    for (const ciuic_batch_item& item : ArrayView<ciuic_batch_item>(plan->items)) {
      results += bytes_of(&item, sizeof(item));
    }
    const GuardedArray<ciuic_rank_report> reports({report(*plan)});
    b.calls().check("observe", [&] { return vt.observe(b.self(), number + 1, 0, reports.c()); });
    return results;
  }

 private:
  [[nodiscard]] ciuic_batch_request next_request(uint64_t step) const {
    ciuic_batch_request r{};
    r.struct_size = sizeof(r);
    r.seed = context_.seed;
    r.epoch = samples_ / kEpochSamples;
    r.step = step;
    r.consumed_samples = samples_;
    r.consumed_tokens = tokens_;
    r.world = 1;
    r.only_rank = -1;
    r.row_tokens = kRowTokens;
    return r;
  }
  static ciuic_rank_report report(const ciuic_batch_plan& plan) {
    ciuic_rank_report r{};
    r.struct_size = sizeof(r);
    r.micro_batches = plan.micro_batches;
    r.tokens = plan.tokens;
    r.memory_used = 1 << 20;
    r.memory_total = 1 << 30;
    r.seconds = 0.5;
    return r;
  }

  uint64_t samples_ = 0;
  uint64_t tokens_ = 0;
};

}  // namespace

std::unique_ptr<Exercise> exercise_batch_scheduler(const TestContext& context, Bench& bench) {
  return std::make_unique<BatchSchedulerExercise>(context, bench);
}

}  // namespace ciuic::testing::contract
