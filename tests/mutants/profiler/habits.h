// SPDX-License-Identifier: MIT
//
// How a profiler of this folder behaves. The defaults are right; a mutant has one of them wrong.
#pragma once

namespace ciuic::mutants::profiler {

struct Habits {
  const char* name = "tally";
  const char* what = "keeps a fixed number of events, adds them up at flush";

  // ---- faults ----
  bool emit_is_slow = false;      // 20 us an event
  bool emit_waits = false;        // for a flush
  bool keeps_everything = false;  // without bound
  bool needs_parent = false;      // dies of a parent that it does not know
  bool dies_after_quiesce = false;
  bool keeps_events = false;  // pointers to them, after emit
  bool is_unlocked = false;
  bool ignores_deadline = false;
  bool mask_changes = false;
  bool writes_into_events = false;
  bool quotes_names = true;  // in its csv
  bool loses_some = false;   // and promises not to
  bool needs_file = false;   // writes to a file that could not be opened

  // ---- oddities that the contract allows ----
  bool drops_all = false;
  bool flushes_slowly = false;
  bool has_thread = false;  // which adds up
  bool writes_csv = false;  // into the output folder; keeps all
};

}  // namespace ciuic::mutants::profiler
