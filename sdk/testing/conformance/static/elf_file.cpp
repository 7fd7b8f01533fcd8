// SPDX-License-Identifier: MIT
#include "elf_file.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include <ciuic/testing/conformance.hpp>

namespace ciuic::testing {
namespace {

std::string whole_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  require(in.good(), "cannot read " + path);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

}  // namespace

template <typename T>
T ElfFile::at(uint64_t offset, const char* what) const {
  require(offset <= bytes_.size() && bytes_.size() - offset >= sizeof(T),
          std::string("the file is damaged: its ") + what + " lies outside of it");
  T out;
  std::memcpy(&out, bytes_.data() + offset, sizeof(T));
  return out;
}

template <typename T>
std::vector<T> ElfFile::array_at(uint64_t offset, uint64_t count, const char* what) const {
  require(offset <= bytes_.size() && count <= (bytes_.size() - offset) / sizeof(T),
          std::string("the file is damaged: its ") + what + " lies outside of it");
  std::vector<T> out(count);
  if (count > 0) {
    std::memcpy(out.data(), bytes_.data() + offset, count * sizeof(T));
  }
  return out;
}

std::string ElfFile::text_at(uint64_t offset, uint64_t end, const char* what) const {
  end = std::min<uint64_t>(end, bytes_.size());
  const size_t nul = offset < end ? bytes_.find('\0', offset) : std::string::npos;
  require(nul != std::string::npos && nul < end,
          std::string("the file is damaged: the text of its ") + what + " has no end");
  return bytes_.substr(offset, nul - offset);
}

/// Where the byte that will be mapped at `address` is in the file.
uint64_t ElfFile::offset_of(uint64_t address, const char* what) const {
  for (const Elf64_Phdr& s : segments_) {
    if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) {
      return s.p_offset + (address - s.p_vaddr);
    }
  }
  throw CheckFailed(std::string("the file is damaged: its ") + what + " is in no segment");
}

ElfFile::ElfFile(const std::string& path) : bytes_(whole_file(path)) {
  read_headers();
  read_dynamic();
}

void ElfFile::read_headers() {
  const auto head = at<Elf64_Ehdr>(0, "ELF header");
  require(std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0, "not an ELF file");
  require(head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_ident[EI_DATA] == ELFDATA2LSB,
          "not a 64-bit little-endian ELF file");
  require(head.e_type == ET_DYN, "not a shared library");
  require(head.e_phnum == 0 || head.e_phentsize == sizeof(Elf64_Phdr),
          "the file is damaged: size of a program header");
  segments_ = array_at<Elf64_Phdr>(head.e_phoff, head.e_phnum, "program header table");
  if (head.e_shoff != 0 && head.e_shentsize == sizeof(Elf64_Shdr)) {
    sections_ = array_at<Elf64_Shdr>(head.e_shoff, head.e_shnum, "section header table");
  }
}

void ElfFile::read_dynamic() {
  const auto dynamic = std::find_if(segments_.begin(), segments_.end(),
                                    [](const Elf64_Phdr& s) { return s.p_type == PT_DYNAMIC; });
  require(dynamic != segments_.end(), "the library has no dynamic section");
  std::map<int64_t, uint64_t> one;
  std::vector<uint64_t> needed;
  for (const Elf64_Dyn& entry : array_at<Elf64_Dyn>(
           dynamic->p_offset, dynamic->p_filesz / sizeof(Elf64_Dyn), "dynamic section")) {
    if (entry.d_tag == DT_NULL) {
      break;
    }
    one[entry.d_tag] = entry.d_un.d_val;
    if (entry.d_tag == DT_NEEDED) {
      needed.push_back(entry.d_un.d_val);
    }
  }
  require(one.count(DT_STRTAB) == 1 && one.count(DT_SYMTAB) == 1,
          "the dynamic section has no symbols");
  const uint64_t strings = offset_of(one[DT_STRTAB], "string table");
  const auto text = [&](uint64_t offset, const char* what) {
    return text_at(strings + offset, strings + one[DT_STRSZ], what);
  };
  for (const uint64_t offset : needed) {
    needed_.push_back(text(offset, "needed library"));
  }
  for (const int64_t tag : {DT_RPATH, DT_RUNPATH}) {
    if (one.count(tag) == 1) {
      run_paths_.push_back(text(one[tag], "run path"));
    }
  }
  soname_ = one.count(DT_SONAME) == 1 ? text(one[DT_SONAME], "soname") : "";
  binds_now_ = one.count(DT_BIND_NOW) == 1 || (one[DT_FLAGS] & DF_BIND_NOW) != 0 ||
               (one[DT_FLAGS_1] & DF_1_NOW) != 0;
  text_relocations_ = one.count(DT_TEXTREL) == 1 || (one[DT_FLAGS] & DF_TEXTREL) != 0;

  const uint64_t count = count_dynamic_symbols(one[DT_HASH], one[DT_GNU_HASH]);
  const uint64_t first = offset_of(one[DT_SYMTAB], "symbol table");
  for (const Elf64_Sym& raw : array_at<Elf64_Sym>(first, count, "symbol table")) {
    dynamic_symbols_.push_back(symbol(raw, strings, one[DT_STRSZ]));
  }
}

/// The dynamic section does not say; the section headers do, or else the hash tables.
uint64_t ElfFile::count_dynamic_symbols(uint64_t hash, uint64_t gnu_hash) const {
  for (const Elf64_Shdr& s : sections_) {
    if (s.sh_type == SHT_DYNSYM) {
      return s.sh_size / sizeof(Elf64_Sym);
    }
  }
  if (hash != 0) {
    return at<uint32_t>(offset_of(hash, "hash table") + 4, "hash table");
  }
  require(gnu_hash != 0, "the library has no symbol hash table");
  const uint64_t table = offset_of(gnu_hash, "hash table");
  const auto head = array_at<uint32_t>(table, 4, "hash table");  // buckets, first, bloom words
  const uint64_t buckets = table + 16 + uint64_t{head[2]} * 8;
  uint32_t last = 0;
  for (const uint32_t bucket : array_at<uint32_t>(buckets, head[0], "hash table")) {
    last = std::max(last, bucket);
  }
  if (last < head[1]) {
    return head[1];
  }
  const uint64_t chains = buckets + uint64_t{head[0]} * 4;
  while ((at<uint32_t>(chains + uint64_t{last - head[1]} * 4, "hash table") & 1U) == 0) {
    ++last;
  }
  return uint64_t{last} + 1;
}

ElfSymbol ElfFile::symbol(const Elf64_Sym& raw, uint64_t strings, uint64_t size) const {
  ElfSymbol out;
  out.name = text_at(strings + raw.st_name, strings + size, "symbol");
  out.address = raw.st_value;
  out.size = raw.st_size;
  out.type = ELF64_ST_TYPE(raw.st_info);
  out.binding = ELF64_ST_BIND(raw.st_info);
  out.defined = raw.st_shndx != SHN_UNDEF;
  const unsigned visibility = ELF64_ST_VISIBILITY(raw.st_other);
  out.hidden = visibility == STV_HIDDEN || visibility == STV_INTERNAL;
  return out;
}

std::vector<ElfSymbol> ElfFile::all_symbols() const {
  std::vector<ElfSymbol> out;
  for (const Elf64_Shdr& s : sections_) {
    if (s.sh_type != SHT_SYMTAB || s.sh_link >= sections_.size()) {
      continue;
    }
    const Elf64_Shdr& strings = sections_[s.sh_link];
    for (const Elf64_Sym& raw :
         array_at<Elf64_Sym>(s.sh_offset, s.sh_size / sizeof(Elf64_Sym), "symbol table")) {
      out.push_back(symbol(raw, strings.sh_offset, strings.sh_size));
    }
  }
  return out;
}

std::vector<ElfNote> ElfFile::notes() const {
  const auto padded = [](uint64_t n) { return (n + 3) / 4 * 4; };
  std::vector<ElfNote> out;
  for (const Elf64_Phdr& s : segments_) {
    if (s.p_type != PT_NOTE || s.p_align > 4) {  // GNU property notes are aligned to 8
      continue;
    }
    for (uint64_t offset = 0; s.p_filesz - offset >= sizeof(Elf64_Nhdr);) {
      const auto head = at<Elf64_Nhdr>(s.p_offset + offset, "note");
      const uint64_t name = s.p_offset + offset + sizeof(head);
      const uint64_t description = name + padded(head.n_namesz);
      const uint64_t end = description + padded(head.n_descsz);
      require(end <= s.p_offset + s.p_filesz && end <= bytes_.size(),
              "the file is damaged: a note runs past its segment");
      ElfNote& note = out.emplace_back();
      note.name = bytes_.substr(name, head.n_namesz > 0 ? head.n_namesz - 1 : 0);
      note.type = head.n_type;
      note.description = bytes_.substr(description, head.n_descsz);
      offset = end - s.p_offset;
      if (offset >= s.p_filesz) {
        break;
      }
    }
  }
  return out;
}

}  // namespace ciuic::testing
