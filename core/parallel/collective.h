// SPDX-License-Identifier: MIT
//
// What the host itself says over a group: small sums, maxima and counts in host memory, barriers, and
// agreement on failures.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/log/failure.h"
#include "core/parallel/group.h"

namespace ciuic::core {

/// Sums `sums` and takes the maximum of `maxima` over the group, in place, as one collective.
/// Blocks. Throws Failure (Communication).
void reduce_in_place(const Group& group, std::span<double> sums, std::span<double> maxima,
                     std::string_view label);

/// Sums int64 values in place over the group. Blocks.
void sum_in_place(const Group& group, std::span<int64_t> values, std::string_view label);

/// Even parts of `in`, one for each rank; `out` gets those of all ranks for this one. Blocks.
void all_to_all(const Group& group, std::span<const int64_t> in, std::span<int64_t> out,
                std::string_view label);

void barrier(const Group& group, std::string_view label);

/// All ranks call this with what happened to them (NULL: nothing). If any failed, every rank
/// throws: its own failure, or one that names the rank whose failure has the highest code.
void agree(const Group& group, const Failure* mine, std::string_view during);

}  // namespace ciuic::core
