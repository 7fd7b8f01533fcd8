// SPDX-License-Identifier: MIT
#include "exercise.hpp"

namespace ciuic::testing::contract {

std::unique_ptr<Exercise> make_exercise(const TestContext& context, Bench& bench) {
  switch (context.plugin.descriptor().kind) {
    case CIUIC_KIND_COMMUNICATOR:
      return exercise_communicator(context, bench);
    case CIUIC_KIND_SHARDING:
      return exercise_sharding(context, bench);
    case CIUIC_KIND_PRECISION:
      return exercise_precision(context, bench);
    case CIUIC_KIND_BATCH_SCHEDULER:
      return exercise_batch_scheduler(context, bench);
    case CIUIC_KIND_CHECKPOINT:
      return exercise_checkpoint(context, bench);
    case CIUIC_KIND_PROFILER:
      return exercise_profiler(context, bench);
    case CIUIC_KIND_OPTIMIZER:
      return exercise_optimizer(context, bench);
    default:
      throw CheckFailed("kind " + std::to_string(context.plugin.descriptor().kind) + " is unknown");
  }
}

std::string whole_life(const TestContext& context, Bench& bench, const Calls& calls,
                       uint64_t rounds, const OptionValues& own) {
  const std::unique_ptr<Exercise> exercise = make_exercise(context, bench);
  Instance instance(context, bench.host(), calls, own, bench.seat());
  std::string results;
  try {
    exercise->start(instance);
    exercise->first_values(instance);
    for (uint64_t i = 0; i < rounds; ++i) {
      results += exercise->round(instance, i);
    }
    instance.quiesce();
  } catch (const Error&) {
    exercise->give_up(instance);
    throw;
  }
  instance.destroy();
  return results;
}

}  // namespace ciuic::testing::contract
