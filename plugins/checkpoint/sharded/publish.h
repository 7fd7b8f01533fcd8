// SPDX-License-Identifier: MIT
//
// From a written-aside folder to a checkpoint under its own name: the steps whose order makes a
// save a transaction. docs/checkpoint_format.md, "Commit", says what each step is good for.
#pragma once

#include <string>
#include <vector>

#include <ciuic/host.hpp>

#include "checkpoint_format/files.h"
#include "index.h"

namespace ciuic::plugins::sharded {

/// Where a folder is moved before it is deleted.
[[nodiscard]] std::string removed_of(const std::string& path);

/// Is this folder a checkpoint of this format, or what is left of one?
[[nodiscard]] bool is_ours(const checkpoint::Files& files, const std::string& path,
                           const std::vector<checkpoint::Listed>& listing);

/// Makes the folder aside, new and empty, after a look at what lies at `path`. Throws EXISTS when
/// that is not ours.
void prepare(const checkpoint::Files& files, const std::string& path);

/// Writes the index into the folder aside and gives it the name `path`. A checkpoint that is there
/// already stays readable until the new one has replaced it, in one rename.
void publish(const Host& host, const checkpoint::Files& files, const std::string& path,
             Index index);

}  // namespace ciuic::plugins::sharded
