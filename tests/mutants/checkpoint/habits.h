// SPDX-License-Identifier: MIT
//
// How a checkpoint plugin of this folder behaves. The defaults are right; a mutant has one of them
// wrong.
#pragma once

namespace ciuic::mutants::checkpoint {

struct Habits {
  const char* name = "shelf";
  const char* what = "folder of one part a rank, checksums, written aside and renamed";

  // ---- faults ----
  bool syncs_files = true;
  bool syncs_folders = true;
  bool replaces_by_removing = false;  // the old checkpoint goes before the new one comes
  bool compares_checksums = true;
  bool compares_manifest = true;  // parts with the checksum that the manifest lists
  bool copies_sources = true;
  bool places_ranks_right = true;
  bool cleans_on_close = true;
  bool keys_as_paths = false;
  bool lists_all = true;
  bool reports_write_errors = true;
  bool checks_type = true;
  bool closes_files = true;
  bool opens_anything = false;  // DATA_LOSS for what is not its own

  // ---- oddities that the contract allows ----
  bool is_one_file = false;  // by rank 0; replaces by rename
  bool commits_in_thread = false;
  bool works_in_wait = false;  // put and get do their work when they are waited for
  bool is_alone = false;       // one rank, f32 and bf16 parameters, no remove
};

/// The right habits with something changed.
template <typename Change>
constexpr Habits changed(const char* name, const char* what, Change change) {
  Habits h;
  h.name = name;
  h.what = what;
  change(h);
  return h;
}

}  // namespace ciuic::mutants::checkpoint
