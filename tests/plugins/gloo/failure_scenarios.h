// SPDX-License-Identifier: MIT
//
// What must fail in moves and messages, and how.
#pragma once

#include "rank.h"

namespace ciuic::tests {

/// Ranks that disagree about an operation get DEADLINE, never data.
void mismatches(Rank& r);
/// The last rank is there, but takes no part: DEADLINE within 10 %, naming it.
void silent_in_moves(Rank& r);
/// The last rank is killed in the middle of all-to-alls and messages.
void killed_in_moves(Rank& r);
/// Rank 0 waits for a message that nobody sends, and aborts.
void abort_open_receive(Rank& r);

}  // namespace ciuic::tests
