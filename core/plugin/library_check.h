// SPDX-License-Identifier: MIT
//
// What a library's headers and note say against loading it, and what its descriptors say against its
// note.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plugin/descriptor_info.h"
#include "core/plugin/elf_file.h"
#include "core/plugin/library_note.h"
#include "core/plugin/probe.h"

namespace ciuic::core {

/// Why it is refused (step "note"): another ABI, an unknown kind, or a build that would harm the
/// host.
std::optional<Refusal> library_problem(const ElfFile& file, const LibraryNote& note);

/// What its author should mend, although it loads.
std::vector<std::string> library_warnings(const ElfFile& file);

/// Where the descriptors differ from the note; empty when they agree.
std::string note_problem(const LibraryNote& note,
                         const std::vector<std::shared_ptr<const DescriptorInfo>>& plugins);

}  // namespace ciuic::core
