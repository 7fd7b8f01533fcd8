// SPDX-License-Identifier: MIT
//
// What the loader must know of a shared library before any of its code runs: notes, dynamic
// section, exported symbols. Reads an untrusted image in memory: every offset is checked against
// the span, every loop is bounded by it, and nothing is allocated by a number that the file claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ciuic::core {

/// The image is no library that this machine could load. The message says what is wrong with it.
class ElfError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ElfNote {
  std::string owner;  // "GNU", "ciuic"
  uint32_t type = 0;
  std::vector<std::byte> description;
};

struct ElfSymbol {
  std::string name;
  bool is_unique = false;  // STB_GNU_UNIQUE: the library will not unload
  bool is_weak = false;
};

struct ElfFile {
  std::string soname;
  std::vector<std::string> needed;   // DT_NEEDED, in order
  std::vector<std::string> rpath;    // DT_RPATH, split at colons
  std::vector<std::string> runpath;  // DT_RUNPATH, split at colons
  std::vector<ElfSymbol> exports;    // defined, global and visible
  std::vector<ElfNote> notes;
  std::string build_id;  // hexadecimal; empty when there is none
  bool has_text_relocations = false;
  bool has_executable_stack = false;  // also when nothing is said: the loader then makes it so

  /// Throws ElfError.
  static ElfFile parse(std::span<const std::byte> image);

  [[nodiscard]] bool exports_symbol(std::string_view name) const;
  [[nodiscard]] const ElfNote* find_note(std::string_view owner, uint32_t type) const;
};

}  // namespace ciuic::core
