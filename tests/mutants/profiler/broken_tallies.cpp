// SPDX-License-Identifier: MIT
//
// Profilers with one fault each, and "tally", which has none.
#include "tally.h"

namespace ciuic::mutants::profiler {
namespace {

constexpr Habits kTally;
constexpr Habits kSlow = changed("slow_emit", "formats in emit: 20 us an event",
                                 [](Habits& h) { h.emit_is_slow = true; });
constexpr Habits kWaits = changed("emit_waits", "emit waits for a flush that writes",
                                  [](Habits& h) { h.emit_waits = true; });
constexpr Habits kGrows = changed("grows", "keeps every event until destroy",
                                  [](Habits& h) { h.keeps_everything = true; });
constexpr Habits kNeedsParent = changed("needs_parent", "dies of a parent that it does not know",
                                        [](Habits& h) { h.needs_parent = true; });
constexpr Habits kDiesQuiesced =
    changed("dies_quiesced", "dies when its mask is read after quiesce",
            [](Habits& h) { h.dies_after_quiesce = true; });
constexpr Habits kKeepsEvents = changed("keeps_events", "reads events after emit returned",
                                        [](Habits& h) { h.keeps_events = true; });
constexpr Habits kUnlocked = changed("unlocked", "counts on one thread at a time, without a lock",
                                     [](Habits& h) { h.is_unlocked = true; });
constexpr Habits kNoDeadline =
    changed("no_deadline", "flush takes its time", [](Habits& h) { h.ignores_deadline = true; });
constexpr Habits kMaskChanges = changed("mask_changes", "another mask each time it is asked",
                                        [](Habits& h) { h.mask_changes = true; });
constexpr Habits kWritesInto = changed("writes_into", "writes into the events that it is shown",
                                       [](Habits& h) { h.writes_into_events = true; });
constexpr Habits kUnquoted = changed("unquoted", "csv with names as they are", [](Habits& h) {
  h.writes_csv = true;
  h.quotes_names = false;
});
constexpr Habits kLosesSome =
    changed("loses_some", "promises all events and loses some", [](Habits& h) {
      h.writes_csv = true;
      h.loses_some = true;
    });
constexpr Habits kNeedsFile =
    changed("needs_file", "dies when its file cannot be opened", [](Habits& h) {
      h.writes_csv = true;
      h.needs_file = true;
    });

}  // namespace
}  // namespace ciuic::mutants::profiler

namespace m = ciuic::mutants::profiler;
CIUIC_PLUGINS(m::TallyOf<m::kTally>, m::TallyOf<m::kSlow>, m::TallyOf<m::kWaits>,
              m::TallyOf<m::kGrows>, m::TallyOf<m::kNeedsParent>, m::TallyOf<m::kDiesQuiesced>,
              m::TallyOf<m::kKeepsEvents>, m::TallyOf<m::kUnlocked>, m::TallyOf<m::kNoDeadline>,
              m::TallyOf<m::kMaskChanges>, m::TallyOf<m::kWritesInto>, m::TallyOf<m::kUnquoted>,
              m::TallyOf<m::kLosesSome>, m::TallyOf<m::kNeedsFile>)
