// SPDX-License-Identifier: MIT
#include "core/plugin/elf_check.h"

#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>

namespace ciuic::core {
namespace {

constexpr uint16_t kMachine =
#if defined(__x86_64__)
    EM_X86_64;
#elif defined(__aarch64__)
    EM_AARCH64;
#else
    EM_NONE;
#endif

bool read_at(std::ifstream& file, uint64_t offset, void* out, size_t bytes) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(file.read(static_cast<char*>(out), static_cast<std::streamsize>(bytes)));
}

/// Does [offset, offset + bytes) lie inside a file of `size` bytes? Without wrapping around.
bool is_inside(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

std::string header_problem(const Elf64_Ehdr& header, uint64_t size) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return "it is no 64-bit little-endian library";
  }
  if (header.e_machine != kMachine) {
    return "it was built for another processor (ELF machine " + std::to_string(header.e_machine) +
           ", this one is " + std::to_string(kMachine) + ")";
  }
  if (header.e_type != ET_DYN) {
    return "it is no shared library (ELF type " + std::to_string(header.e_type) + ")";
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) ||
      !is_inside(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), size)) {
    return "it is damaged or truncated: its program headers lie outside the file";
  }
  return "";
}

}  // namespace

std::string elf_problem(const std::string& path) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec)) {
    return "it is no regular file";
  }
  const uint64_t size = std::filesystem::file_size(path, ec);
  std::ifstream file(path, std::ios::binary);
  if (ec || !file) {
    return "it cannot be read";
  }
  Elf64_Ehdr header{};
  const bool is_whole = read_at(file, 0, &header, sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "it is no shared library (no ELF header)";
  }
  if (!is_whole) {
    return "it is damaged or truncated: its header is incomplete";
  }
  if (std::string problem = header_problem(header, size); !problem.empty()) {
    return problem;
  }
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!read_at(file, header.e_phoff + uint64_t{i} * sizeof(segment), &segment, sizeof(segment)) ||
        !is_inside(segment.p_offset, segment.p_filesz, size)) {
      return "it is damaged or truncated: segment " + std::to_string(i) +
             " ends outside the file of " + std::to_string(size) + " bytes";
    }
  }
  return "";
}

}  // namespace ciuic::core
