// SPDX-License-Identifier: MIT
//
// Checkpoint plugins with one fault each, and "shelf", which has none.
#include <array>

#include "shelf.h"

namespace ciuic::mutants::checkpoint {
namespace {

constexpr Habits kShelf;
constexpr Habits kNoFileSync = changed("no_file_sync", "renames before it syncs the files",
                                       [](Habits& h) { h.syncs_files = false; });
constexpr Habits kNoFolderSync =
    changed("no_folder_sync", "syncs no folder", [](Habits& h) { h.syncs_folders = false; });
constexpr Habits kNotAtomic =
    changed("not_atomic", "removes the old checkpoint, then renames the new one",
            [](Habits& h) { h.replaces_by_removing = true; });
constexpr Habits kUnchecked = changed("unchecked", "returns what a flipped byte made of the data",
                                      [](Habits& h) { h.compares_checksums = false; });
constexpr Habits kMixedSteps =
    changed("mixed_steps", "each part is checked by itself, so parts of two steps read as one",
            [](Habits& h) { h.compares_manifest = false; });
constexpr Habits kKeepsPointer =
    changed("keeps_pointer", "reads the source at the commit, after put's work was done",
            [](Habits& h) { h.copies_sources = false; });
constexpr Habits kOverlapping = changed("overlapping", "parts of ranks above 0 lie one element off",
                                        [](Habits& h) { h.places_ranks_right = false; });
constexpr Habits kLeavesTemporary =
    changed("leaves_temporary", "close without commit leaves its folder",
            [](Habits& h) { h.cleans_on_close = false; });
constexpr Habits kKeysAsPaths = changed("keys_as_paths", "writes a file named after each key",
                                        [](Habits& h) { h.keys_as_paths = true; });
constexpr Habits kListMisses = changed("list_misses", "list leaves out the last entry",
                                       [](Habits& h) { h.lists_all = false; });
constexpr Habits kHidesErrors = changed("hides_errors", "reports success when a write failed",
                                        [](Habits& h) { h.reports_write_errors = false; });
constexpr Habits kAnyType = changed("any_type", "get into another element type of the same width",
                                    [](Habits& h) { h.checks_type = false; });
constexpr Habits kLeaksFiles = changed("leaks_files", "never closes a file that it read",
                                       [](Habits& h) { h.closes_files = false; });
constexpr Habits kClaimsAll =
    changed("claims_all", "reports data loss for folders of other formats",
            [](Habits& h) { h.opens_anything = true; });

}  // namespace
}  // namespace ciuic::mutants::checkpoint

namespace m = ciuic::mutants::checkpoint;
CIUIC_PLUGINS(m::ShelfOf<m::kShelf>, m::ShelfOf<m::kNoFileSync>, m::ShelfOf<m::kNoFolderSync>,
              m::ShelfOf<m::kNotAtomic>, m::ShelfOf<m::kUnchecked>, m::ShelfOf<m::kMixedSteps>,
              m::ShelfOf<m::kKeepsPointer>, m::ShelfOf<m::kOverlapping>,
              m::ShelfOf<m::kLeavesTemporary>, m::ShelfOf<m::kKeysAsPaths>,
              m::ShelfOf<m::kListMisses>, m::ShelfOf<m::kHidesErrors>, m::ShelfOf<m::kAnyType>,
              m::ShelfOf<m::kLeaksFiles>, m::ShelfOf<m::kClaimsAll>)
