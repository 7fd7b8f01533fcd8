// SPDX-License-Identifier: MIT
//
// A short script of legal calls for each kind, so that tests that know no kind also cover real
// work. Structs that it hands over end at an inaccessible page.
//
//   auto exercise = make_exercise(context, bench);
//   Instance instance(context, bench.host(), calls, {}, bench.seat());
//   exercise->start(instance);
//   exercise->first_values(instance);     // or instance.load(saved)
//   std::string results = exercise->round(instance, 0);
#pragma once

#include <memory>
#include <string>

#include "bench.hpp"
#include "calls.hpp"

namespace ciuic::testing::contract {

class Exercise {
 public:
  Exercise(const TestContext& context, Bench& bench) : context_(context), bench_(bench) {}
  Exercise(const Exercise&) = delete;
  Exercise& operator=(const Exercise&) = delete;
  virtual ~Exercise() = default;

  /// What comes between create and state_load.
  virtual void start(const Instance&) {}
  /// What a fresh run begins with; a swapped-in instance is given the saved state instead.
  virtual void first_values(const Instance&) {}
  /// One step's work. Returns the results as bytes: a function of the rounds so far, and of nothing
  /// else where the plugin is deterministic. Throws Error with what a call reports.
  virtual std::string round(const Instance&, uint64_t number) = 0;
  /// Called when a round failed: what must happen before destroy.
  virtual void give_up(const Instance&) {}

 protected:
  const TestContext& context_;
  Bench& bench_;
};

std::unique_ptr<Exercise> make_exercise(const TestContext& context, Bench& bench);

// One file each.
std::unique_ptr<Exercise> exercise_communicator(const TestContext&, Bench&);
std::unique_ptr<Exercise> exercise_sharding(const TestContext&, Bench&);
std::unique_ptr<Exercise> exercise_precision(const TestContext&, Bench&);
std::unique_ptr<Exercise> exercise_batch_scheduler(const TestContext&, Bench&);
std::unique_ptr<Exercise> exercise_checkpoint(const TestContext&, Bench&);
std::unique_ptr<Exercise> exercise_profiler(const TestContext&, Bench&);
std::unique_ptr<Exercise> exercise_optimizer(const TestContext&, Bench&);

/// An instance at work: created, started, given its first values.
struct Working {
  Working(const TestContext& context, Bench& bench, const Calls& calls)
      : exercise(make_exercise(context, bench)),
        instance(context, bench.host(), calls, {}, bench.seat()) {
    exercise->start(instance);
    exercise->first_values(instance);
  }
  std::string round(uint64_t number) { return exercise->round(instance, number); }

  std::unique_ptr<Exercise> exercise;  // outlives the instance
  Instance instance;
};

/// Bytes of a tensor or struct, to append to a round's results.
inline std::string bytes_of(const void* data, size_t size) {
  return std::string(static_cast<const char*>(data), size);
}

/// Whole life: create, start, first values, some rounds, quiesce, destroy. Throws Error as soon as
/// a call reports one; the instance is destroyed all the same.
std::string whole_life(const TestContext& context, Bench& bench, const Calls& calls,
                       uint64_t rounds, const OptionValues& own = {});

}  // namespace ciuic::testing::contract
