// SPDX-License-Identifier: MIT
//
// Runs cases through the group under test, several in flight, and compares each with its reference.
#pragma once

#include <vector>

#include "case_buffers.hpp"
#include "worlds.hpp"

namespace ciuic::testing::communicator {

/// What the group must be able to do for a case.
uint64_t bits_needed(const Case& c);
bool is_offered(const Group& group, const Case& c);

/// Leaves out what capabilities deny. Throws CheckFailed with the first difference. Outputs that all
/// ranks have in common are compared over the ranks too.
void run_cases(Scene& scene, const std::vector<Case>& cases);

/// One of each type, count, and in turn of: in place or not, odd offset or not, shape.
struct Sweep {
  uint32_t op;
  uint32_t reduce = 0;
  bool has_in_place = true;
  std::vector<Spread> spreads{Spread::Even};
  Numbers numbers = Numbers::Ordinary;
  uint32_t flags = 0;
  double factor = 0;
};
std::vector<Case> sweep(const Scene& scene, const Sweep& what,
                        const std::vector<ciuic_dtype>& dtypes, const std::vector<int64_t>& counts);

}  // namespace ciuic::testing::communicator
