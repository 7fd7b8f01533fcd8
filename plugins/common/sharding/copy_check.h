// SPDX-License-Identifier: MIT
//
// A rule that is given an fp32 master writes the narrow value too. One that does not trains on with
// values that never move, without a word; so its work is looked at now and then.
#pragma once

#include <string>
#include <vector>

#include <ciuic/abi/optimizer.h>

#include "sharding/services.h"

namespace ciuic::plugins::stages {

/// Is this update one of 1, 2, 4, 8, ...? A rule that is new is looked at often, a long run hardly.
[[nodiscard]] bool is_looked_at(uint64_t update);

/// Throws INVALID when the first element of a bf16 or fp16 value is farther from its master than one
/// place of its mantissa, which rounding of any kind allows. `who` begins the message.
void check_copies(const TensorOps& ops, const std::vector<ciuic_update>& updates,
                  const ciuic_stream* stream, const std::string& who);

}  // namespace ciuic::plugins::stages
