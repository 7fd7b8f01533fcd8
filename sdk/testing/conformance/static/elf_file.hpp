// SPDX-License-Identifier: MIT
//
// A shared library as a file: what its headers say, without running any of it. Every offset and
// length is checked against the file's size, since the file may be damaged. x86-64 and other 64-bit
// little-endian ELF.
#pragma once

#include <cstdint>
#include <elf.h>
#include <string>
#include <vector>

namespace ciuic::testing {

struct ElfSymbol {
  std::string name;
  uint64_t address = 0;
  uint64_t size = 0;
  unsigned type = 0;     // STT_
  unsigned binding = 0;  // STB_
  bool defined = false;
  bool hidden = false;
  std::string version;  // needed from another library: "GLIBC_2.34"
};

struct ElfNote {
  std::string name;
  uint32_t type = 0;
  std::string description;
};

/// Throws CheckFailed when the file is damaged.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path);

  [[nodiscard]] const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  [[nodiscard]] const std::vector<std::string>& needed() const { return needed_; }
  [[nodiscard]] const std::vector<std::string>& run_paths() const { return run_paths_; }
  [[nodiscard]] const std::string& soname() const { return soname_; }
  [[nodiscard]] bool binds_now() const { return binds_now_; }
  [[nodiscard]] bool has_text_relocations() const { return text_relocations_; }
  [[nodiscard]] const std::vector<ElfSymbol>& dynamic_symbols() const { return dynamic_symbols_; }
  /// Of .symtab: empty when the library is stripped.
  [[nodiscard]] std::vector<ElfSymbol> all_symbols() const;
  [[nodiscard]] std::vector<ElfNote> notes() const;

 private:
  template <typename T>
  [[nodiscard]] T at(uint64_t offset, const char* what) const;
  template <typename T>
  [[nodiscard]] std::vector<T> array_at(uint64_t offset, uint64_t count, const char* what) const;
  [[nodiscard]] std::string text_at(uint64_t offset, uint64_t end, const char* what) const;
  [[nodiscard]] uint64_t offset_of(uint64_t address, const char* what) const;
  void read_headers();
  void read_dynamic();
  [[nodiscard]] uint64_t count_dynamic_symbols(uint64_t hash, uint64_t gnu_hash) const;
  [[nodiscard]] ElfSymbol symbol(const Elf64_Sym& raw, uint64_t strings, uint64_t size) const;

  std::string bytes_;
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::string> needed_, run_paths_;
  std::string soname_;
  bool binds_now_ = false;
  bool text_relocations_ = false;
  std::vector<ElfSymbol> dynamic_symbols_;
};

}  // namespace ciuic::testing
