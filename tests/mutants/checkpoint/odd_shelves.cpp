// SPDX-License-Identifier: MIT
//
// Checkpoint plugins that are right and not like the tree's own.
#include <array>

#include "shelf.h"

namespace ciuic::mutants::checkpoint {
namespace {

constexpr Habits kOneFile = changed("one_file", "a checkpoint is one file, written by rank 0",
                                    [](Habits& h) { h.is_one_file = true; });
constexpr Habits kInThread = changed("in_thread", "commit writes in a thread of its own",
                                     [](Habits& h) { h.commits_in_thread = true; });
constexpr Habits kInWait = changed("in_wait", "put and get work when they are waited for",
                                   [](Habits& h) { h.works_in_wait = true; });
constexpr Habits kAlone = changed("alone", "one rank, f32 and bf16 parameters, no remove",
                                  [](Habits& h) { h.is_alone = true; });

}  // namespace
}  // namespace ciuic::mutants::checkpoint

namespace m = ciuic::mutants::checkpoint;
CIUIC_PLUGINS(m::ShelfOf<m::kOneFile>, m::ShelfOf<m::kInThread>, m::ShelfOf<m::kInWait>,
              m::ShelfOf<m::kAlone>)
