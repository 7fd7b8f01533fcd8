// SPDX-License-Identifier: MIT
//
// The ELF note of a plugin library (abi/note.h) as plain values: which plugins it holds, read
// before any of its code runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plugin/abi_policy.h"
#include "core/plugin/elf_file.h"

namespace ciuic::core {

struct NoteRecord {
  uint32_t kind = 0;
  uint32_t flags = 0;
  uint32_t state_schema = 0;
  uint32_t state_schema_min = 0;
  std::string name;
  std::string version;
  std::vector<std::string> features;
};

struct LibraryNote {
  AbiVersion abi;
  std::string sdk;
  std::vector<NoteRecord> plugins;

  /// Throws ElfError: without a note, or with a damaged one.
  static LibraryNote read(const ElfFile& file);
};

/// Letters that a plugin's name may have, and 1 to 63 of them.
bool is_plugin_name(std::string_view name);

}  // namespace ciuic::core
