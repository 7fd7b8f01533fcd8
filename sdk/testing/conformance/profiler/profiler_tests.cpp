// SPDX-License-Identifier: MIT
//
// The table of the kind. A profiler may drop what it likes, unless it promises otherwise (features
// "events:all", "output:csv", "output:json"); it may never block, crash or grow.
#include "profiler_tests.hpp"

#include "../suites.h"

namespace ciuic::testing {

TestTable profiler_tests() {
  using namespace profiler;
  constexpr uint32_t kind = CIUIC_KIND_PROFILER;
  return {
      {"profiler.emit.cost", 3, kind, 60,
       "emit of one event: half of the calls within 250 ns, 99 % within 5 us", emit_cost},
      {"profiler.emit.while_flushing", 3, kind, 60, "emit does not wait for a flush",
       emit_while_flushing},
      {"profiler.emit.threads", 3, kind, 60, "64 threads emit at once", emit_threads},
      {"profiler.emit.bounded", 3, kind, 120,
       "memory stops growing and emit stays quick over millions of events without a flush",
       emit_bounded},
      {"profiler.events.unmatched", 3, kind, 30,
       "END without BEGIN, BEGIN without END, unknown parent, ids twice, time that runs backwards",
       events_unmatched},
      {"profiler.events.unknown", 3, kind, 30,
       "types and categories of a newer host are passed over", events_unknown},
      {"profiler.events.fields", 3, kind, 30, "fields of every type, empty lists, empty arrays",
       events_fields},
      {"profiler.events.names", 3, kind, 30, "empty names, names of 1 MB, names that are no UTF-8",
       events_names},
      {"profiler.events.not_kept", 3, kind, 30,
       "events and fields may be gone when emit returns (names stay)", events_not_kept},
      {"profiler.events.longer", 3, kind, 30,
       "events of a newer host are longer: the stride says so", events_longer},
      {"profiler.events.unchanged", 3, kind, 30, "emit changes nothing of what it is shown",
       events_unchanged},
      {"profiler.life.without_events", 3, kind, 30, "flush and destroy without any event",
       life_without_events},
      {"profiler.life.after_quiesce", 3, kind, 30,
       "an event after quiesce does no harm; resume goes on", life_after_quiesce},
      {"profiler.life.spans_open", 3, kind, 30, "destroy while spans are open", life_spans_open},
      {"profiler.mask.stable", 3, kind, 30, "mask is the same from any thread within a step",
       mask_stable},
      {"profiler.flush.deadline", 3, kind, 60, "flush returns at its deadline", flush_deadline},
      {"profiler.output.unwritable", 3, kind, 60,
       "files that cannot be made: a clean status, never a crash", output_unwritable},
      {"profiler.output.full", 3, kind, 60, "writes that fail as on a full disk: the same",
       output_full},
      {"profiler.output.parses", 3, kind, 60, "csv and json files parse, whatever the names",
       output_parses},
      {"profiler.output.complete", 3, kind, 60,
       "no event is lost, where the plugin promises so (events:all)", output_complete},
      {"profiler.emit.soak", 4, kind, 900, "many threads, flushes and steps for a long time",
       profiler_soak},
  };
}

}  // namespace ciuic::testing
