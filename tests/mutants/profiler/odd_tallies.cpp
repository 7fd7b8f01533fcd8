// SPDX-License-Identifier: MIT
//
// Profilers that are right and not like the tree's own.
#include "tally.h"

namespace ciuic::mutants::profiler {
namespace {

constexpr Habits kDropsAll = changed("drops_all", "listens to nothing, drops what comes",
                                     [](Habits& h) { h.drops_all = true; });
constexpr Habits kSlowFlush = changed("slow_flush", "a flush of 100 ms that keeps its deadline",
                                      [](Habits& h) { h.flushes_slowly = true; });
constexpr Habits kThreaded =
    changed("threaded", "adds up in a thread of its own", [](Habits& h) { h.has_thread = true; });
constexpr Habits kLedger = changed("ledger", "writes all events to a csv file at flush",
                                   [](Habits& h) { h.writes_csv = true; });

}  // namespace
}  // namespace ciuic::mutants::profiler

namespace m = ciuic::mutants::profiler;
CIUIC_PLUGINS(m::TallyOf<m::kDropsAll>, m::TallyOf<m::kSlowFlush>, m::TallyOf<m::kThreaded>,
              m::TallyOf<m::kLedger>)
