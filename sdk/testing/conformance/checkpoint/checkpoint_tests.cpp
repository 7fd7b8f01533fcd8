// SPDX-License-Identifier: MIT
//
// The table of the kind. Files are kept in memory (MemoryFiles) except where the disk is the point.
//
// What a plugin does not offer it says, and the test is skipped: UNIMPLEMENTED for a key, type, box
// or number of ranks; EXISTS for a save over a checkpoint; the features "checksums:none" (its format
// has none) and "writer:rank0" (rank 0 puts all). Parameters (value/..., f32 and bf16) and
// config.json must be held by all.
#include "checkpoint_tests.hpp"

#include "../suites.h"

namespace ciuic::testing {

TestTable checkpoint_tests() {
  using namespace checkpoint;
  constexpr uint32_t kind = CIUIC_KIND_CHECKPOINT;
  return {
      {"checkpoint.round_trip.model", 3, kind, 30,
       "parameters and config.json come back bit for bit", round_trip_model},
      {"checkpoint.round_trip.training", 3, kind, 30,
       "masters, moments and other blobs come back bit for bit", round_trip_training},
      {"checkpoint.round_trip.dtypes", 3, kind, 30,
       "every element type, fp8, bool and 64-bit integers included, keeps its bits",
       round_trip_dtypes},
      {"checkpoint.round_trip.shapes", 3, kind, 30, "0-d, empty and many-dimensional tensors",
       round_trip_shapes},
      {"checkpoint.round_trip.strided", 3, kind, 30,
       "sources and destinations with strides and a byte offset", round_trip_strided},
      {"checkpoint.round_trip.keys", 3, kind, 30,
       "names with spaces, quotes, brackets, UTF-8, slashes; names that differ little",
       round_trip_keys},
      {"checkpoint.round_trip.blobs", 3, kind, 30, "empty, binary and large blobs",
       round_trip_blobs},
      {"checkpoint.round_trip.many", 3, kind, 60, "ten thousand tensors (fewer on a slow machine)",
       round_trip_many},
      {"checkpoint.round_trip.disk", 3, kind, 60, "the same on a real disk", round_trip_disk},
      {"checkpoint.list.complete", 3, kind, 30,
       "list shows every entry with type, shape and bytes, until close", list_is_complete},
      {"checkpoint.get.ranges", 3, kind, 30, "any range of a tensor reads as it was saved",
       get_ranges},
      {"checkpoint.get.boxes", 3, kind, 30, "any box of a tensor reads as it was saved", get_boxes},
      {"checkpoint.get.mismatch", 3, kind, 30,
       "a wrong type, shape, place or key is an error, not other data", get_mismatch},
      {"checkpoint.get.while_saving", 3, kind, 30,
       "an instance reads one checkpoint while it saves another", read_while_saving},
      {"checkpoint.put.work", 3, kind, 30, "the source may change once put's work is done",
       put_work},
      {"checkpoint.put.any_thread", 3, kind, 30, "put and get come from any thread, one at a time",
       put_any_thread},
      {"checkpoint.begin.unannounced", 3, kind, 30, "a save without a list of entries",
       begin_unannounced},
      {"checkpoint.close.uncommitted", 3, kind, 30, "close without commit leaves nothing",
       close_uncommitted},
      {"checkpoint.save.over", 3, kind, 30, "a save over a checkpoint replaces it or is refused",
       save_over},
      {"checkpoint.save.again", 3, kind, 60,
       "many saves by one instance leave one checkpoint each and nothing else", save_again},
      {"checkpoint.open.nothing", 3, kind, 30, "NOT_FOUND where nothing is", open_nothing},
      {"checkpoint.open.foreign", 3, kind, 30, "UNIMPLEMENTED for what is not this format",
       open_foreign},
      {"checkpoint.remove.one", 3, kind, 30, "remove takes one checkpoint and nothing beside it",
       remove_one},
      {"checkpoint.safety.uris", 3, kind, 30, "a uri that can be none is an error", odd_uris},
      {"checkpoint.safety.keys", 3, kind, 30,
       "keys with .., NUL, absolute paths, of any length: refused or kept, no file outside the uri",
       hostile_keys},
      {"checkpoint.ranks.say_so", 3, kind, 60,
       "two ranks save together, or the plugin says that it does not serve them", ranks_say_so},
      {"checkpoint.reshard.1_to_3", 3, kind, 60, "saved by one rank, read by three",
       reshard_1_to_3},
      {"checkpoint.reshard.4_to_2", 3, kind, 60, "saved by four ranks, read by two",
       reshard_4_to_2},
      {"checkpoint.reshard.rows", 3, kind, 60,
       "saved as ranges of boxes of whole rows by four ranks, read by three", reshard_rows},
      {"checkpoint.reshard.boxes", 3, kind, 60,
       "saved as ranges of any boxes by four ranks, read by three", reshard_boxes},
      {"checkpoint.commit.durable", 3, kind, 30,
       "after commit nothing is left that a power cut could take", commit_durable},
      {"checkpoint.commit.order", 3, kind, 60,
       "what can be read is durable in its data: synced before it became visible", commit_order},
      {"checkpoint.commit.reader", 3, kind, 60,
       "at every instant of a save a reader sees the old checkpoint or the new one", commit_reader},
      {"checkpoint.faults.error", 3, kind, 120,
       "an I/O error at any call: old or new, a clean status, nothing left behind", faults_error},
      {"checkpoint.faults.no_space", 3, kind, 120, "a full disk at any call: the same",
       faults_no_space},
      {"checkpoint.faults.short_write", 3, kind, 120, "a write cut in half, at each write",
       faults_short_write},
      {"checkpoint.faults.kill", 3, kind, 120, "the process stops at any call: old or new",
       faults_kill},
      {"checkpoint.faults.ranks", 3, kind, 120, "the same faults with two ranks: all fail or none",
       faults_ranks},
      {"checkpoint.faults.power_cut", 3, kind, 120,
       "what was not synced is lost, at any call: old or new", faults_power_cut},
      {"checkpoint.faults.process", 3, kind, 120, "SIGKILL in the middle of a save on a real disk",
       faults_process},
      {"checkpoint.damage.flipped", 3, kind, 120,
       "each flipped byte is found by verify, and get returns no wrong byte", damage_flipped},
      {"checkpoint.damage.truncated", 3, kind, 60, "a file cut short is found", damage_truncated},
      {"checkpoint.damage.missing", 3, kind, 60, "a missing file is found", damage_missing},
      {"checkpoint.damage.mixed", 3, kind, 60, "files of two steps are never read as one",
       damage_mixed},
      {"checkpoint.large.offsets", 4, kind, 600, "a tensor beyond 4 GiB (sparse)", large_offsets},
      {"checkpoint.faults.soak", 4, kind, 900,
       "saves with random faults and power cuts, for soak_seconds", fault_soak},
  };
}

}  // namespace ciuic::testing
