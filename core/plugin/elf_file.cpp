// SPDX-License-Identifier: MIT
#include "core/plugin/elf_file.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <optional>

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

constexpr size_t kMaxText = 4096;  // of one name or path list
constexpr size_t kMaxNotes = 64;
constexpr size_t kMaxDynamic = 4096;  // entries; real libraries have some 30
constexpr size_t kMaxSymbols = 1 << 20;

[[noreturn]] void damaged(const std::string& what) {
  throw ElfError("it is damaged or truncated: " + what);
}

/// A span that is read by offset; what lies outside is an error and not memory.
class Image {
 public:
  explicit Image(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool holds(uint64_t offset, uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }
  template <typename T>
  [[nodiscard]] T at(uint64_t offset, const char* what) const {
    if (!holds(offset, sizeof(T))) {
      damaged(std::string(what) + " lies outside the file of " + std::to_string(bytes_.size()) +
              " bytes");
    }
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  [[nodiscard]] std::span<const std::byte> part(uint64_t offset, uint64_t size,
                                                const char* what) const {
    if (!holds(offset, size)) {
      damaged(std::string(what) + " lies outside the file of " + std::to_string(bytes_.size()) +
              " bytes");
    }
    return bytes_.subspan(offset, size);
  }

  /// At most `size` bytes; fewer at the end of the file.
  [[nodiscard]] std::span<const std::byte> up_to(uint64_t offset, uint64_t size) const {
    return offset < bytes_.size() ? bytes_.subspan(offset, std::min(size, bytes_.size() - offset))
                                  : std::span<const std::byte>{};
  }

 private:
  std::span<const std::byte> bytes_;
};

Elf64_Ehdr header_of(std::span<const std::byte> image) {
  if (image.size() < SELFMAG || std::memcmp(image.data(), ELFMAG, SELFMAG) != 0) {
    throw ElfError("it is no shared library (no ELF header)");
  }
  const auto header = Image(image).at<Elf64_Ehdr>(0, "its header");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    throw ElfError("it is no 64-bit little-endian library");
  }
  if (header.e_machine != kMachine) {
    throw ElfError("it was built for another processor (ELF machine " +
                   std::to_string(header.e_machine) + ", this one is " + std::to_string(kMachine) +
                   ")");
  }
  if (header.e_type != ET_DYN) {
    throw ElfError("it is no shared library (ELF type " + std::to_string(header.e_type) + ")");
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0) {
    damaged("it has no program headers");
  }
  return header;
}

/// The program headers, each of which lies inside the file with all that it maps.
std::vector<Elf64_Phdr> segments_of(const Image& image, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> segments;
  uint64_t last_load = 0;
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t offset = header.e_phoff + uint64_t{i} * sizeof(Elf64_Phdr);
    if (offset < header.e_phoff) {
      damaged("its program headers wrap around");
    }
    const auto s = image.at<Elf64_Phdr>(offset, "a program header");
    if (!image.holds(s.p_offset, s.p_filesz)) {
      damaged("segment " + std::to_string(i) + " ends outside the file");
    }
    if (s.p_type == PT_LOAD) {
      // What ld.so takes for granted and dies of.
      if (s.p_memsz < s.p_filesz || s.p_vaddr + s.p_memsz < s.p_vaddr || s.p_vaddr < last_load ||
          s.p_vaddr + s.p_memsz > uint64_t{1} << 46) {
        damaged("segment " + std::to_string(i) + " is mapped to an impossible place");
      }
      last_load = s.p_vaddr;
    }
    segments.push_back(s);
  }
  return segments;
}

/// The dynamic section and what it points at. Addresses become file offsets through PT_LOAD.
class DynamicReader {
 public:
  DynamicReader(const Image& image, const std::vector<Elf64_Phdr>& segments)
      : image_(image), segments_(segments) {}

  void read(ElfFile& out) {
    const auto dynamic = std::find_if(segments_.begin(), segments_.end(),
                                      [](const Elf64_Phdr& s) { return s.p_type == PT_DYNAMIC; });
    if (dynamic == segments_.end()) {
      damaged("it has no dynamic section");
    }
    std::vector<Elf64_Dyn> named;  // texts wait for the string table's place
    const uint64_t count = dynamic->p_filesz / sizeof(Elf64_Dyn);
    for (uint64_t i = 0; i < count; ++i) {
      if (i == kMaxDynamic) {
        damaged("its dynamic section never ends");
      }
      const auto d =
          image_.at<Elf64_Dyn>(dynamic->p_offset + i * sizeof(Elf64_Dyn), "its dynamic section");
      if (d.d_tag == DT_NULL) {
        break;
      }
      take(d, named, out);
    }
    for (const Elf64_Dyn& d : named) {
      take_text(d, out);
    }
    read_exports(out);
  }

 private:
  void take(const Elf64_Dyn& d, std::vector<Elf64_Dyn>& named, ElfFile& out) {
    switch (d.d_tag) {
      case DT_NEEDED:
      case DT_SONAME:
      case DT_RPATH:
      case DT_RUNPATH:
        named.push_back(d);
        break;
      case DT_STRTAB:
        strings_ = d.d_un.d_ptr;
        break;
      case DT_STRSZ:
        string_bytes_ = d.d_un.d_val;
        break;
      case DT_SYMTAB:
        symbols_ = d.d_un.d_ptr;
        break;
      case DT_HASH:
        hash_ = d.d_un.d_ptr;
        break;
      case DT_GNU_HASH:
        gnu_hash_ = d.d_un.d_ptr;
        break;
      case DT_TEXTREL:
        out.has_text_relocations = true;
        break;
      case DT_FLAGS:
        out.has_text_relocations = out.has_text_relocations || (d.d_un.d_val & DF_TEXTREL) != 0;
        break;
      default:
        break;
    }
  }

  void take_text(const Elf64_Dyn& d, ElfFile& out) {
    const std::string text = string_at(d.d_un.d_val);
    if (d.d_tag == DT_NEEDED) {
      out.needed.push_back(text);
    } else if (d.d_tag == DT_SONAME) {
      out.soname = text;
    } else {
      std::vector<std::string>& into = d.d_tag == DT_RPATH ? out.rpath : out.runpath;
      for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(':', begin), text.size());
        into.push_back(text.substr(begin, end - begin));
        begin = end + 1;
      }
    }
  }

  [[nodiscard]] uint64_t offset_of(uint64_t address, const char* what) const {
    for (const Elf64_Phdr& s : segments_) {
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) {
        return s.p_offset + (address - s.p_vaddr);
      }
    }
    damaged(std::string(what) + " lies outside every segment");
  }

  [[nodiscard]] std::string string_at(uint64_t index) const {
    if (!strings_ || index >= string_bytes_) {
      damaged("a name lies outside its string table");
    }
    const uint64_t begin = offset_of(*strings_, "its string table") + index;
    const auto rest = image_.up_to(begin, std::min<uint64_t>(string_bytes_ - index, kMaxText));
    const void* end = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
    if (end != nullptr) {
      return reinterpret_cast<const char*>(rest.data());
    }
    damaged("a name never ends");
  }

  /// How many symbols there are: only a hash table says so.
  [[nodiscard]] uint64_t symbol_count() const {
    if (gnu_hash_) {
      return gnu_symbol_count(offset_of(*gnu_hash_, "its hash table"));
    }
    if (hash_) {
      return image_.at<uint32_t>(offset_of(*hash_, "its hash table") + 4, "its hash table");
    }
    return 0;
  }

  [[nodiscard]] uint64_t gnu_symbol_count(uint64_t at) const {
    const auto buckets = image_.at<uint32_t>(at, "its hash table");
    const auto first = image_.at<uint32_t>(at + 4, "its hash table");
    const auto bloom = image_.at<uint32_t>(at + 8, "its hash table");
    const uint64_t bucket_at = at + 16 + uint64_t{bloom} * 8;
    const uint64_t chain_at = bucket_at + uint64_t{buckets} * 4;
    uint32_t last = 0;
    for (uint64_t i = 0; i < buckets; ++i) {
      last = std::max(last, image_.at<uint32_t>(bucket_at + i * 4, "its hash table"));
    }
    if (last < first) {
      return first;
    }
    // The chain of the last bucket ends at the last symbol.
    for (uint64_t i = last;; ++i) {
      if ((image_.at<uint32_t>(chain_at + (i - first) * 4, "its hash table") & 1) != 0) {
        return i + 1;
      }
    }
  }

  void read_exports(ElfFile& out) const {
    const uint64_t count = symbols_ ? symbol_count() : 0;
    if (count > kMaxSymbols) {
      damaged("it claims " + std::to_string(count) + " symbols");
    }
    for (uint64_t i = 1; i < count; ++i) {
      const auto s = image_.at<Elf64_Sym>(
          offset_of(*symbols_, "its symbol table") + i * sizeof(Elf64_Sym), "its symbol table");
      const auto binding = ELF64_ST_BIND(s.st_info);
      const auto visibility = ELF64_ST_VISIBILITY(s.st_other);
      if (s.st_shndx == SHN_UNDEF || binding == STB_LOCAL ||
          (visibility != STV_DEFAULT && visibility != STV_PROTECTED)) {
        continue;
      }
      out.exports.push_back({string_at(s.st_name), binding == STB_GNU_UNIQUE, binding == STB_WEAK});
    }
  }

  const Image& image_;
  const std::vector<Elf64_Phdr>& segments_;
  std::optional<uint64_t> strings_, symbols_, hash_, gnu_hash_;
  uint64_t string_bytes_ = 0;
};

uint64_t padded(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

void read_notes(const Image& image, const Elf64_Phdr& segment, std::vector<ElfNote>& out) {
  const uint64_t alignment = segment.p_align == 8 ? 8 : 4;
  uint64_t at = segment.p_offset;
  const uint64_t end = segment.p_offset + segment.p_filesz;
  while (at + sizeof(Elf64_Nhdr) <= end && out.size() < kMaxNotes) {
    const auto head = image.at<Elf64_Nhdr>(at, "a note");
    const uint64_t name_at = at + sizeof(head);
    // Padding counts from the note's begin: with 8 (.note.gnu.property) head and name together fill it.
    const uint64_t text_at = at + padded(sizeof(head) + head.n_namesz, alignment);
    if (text_at > end || head.n_descsz > end - text_at) {
      damaged("a note ends outside its segment");
    }
    ElfNote note;
    note.type = head.n_type;
    for (const std::byte c : image.part(name_at, std::min<uint64_t>(head.n_namesz, 64), "a note")) {
      if (c == std::byte{0}) {
        break;
      }
      note.owner += static_cast<char>(c);
    }
    const auto text = image.part(text_at, head.n_descsz, "a note");
    note.description.assign(text.begin(), text.end());
    out.push_back(std::move(note));
    at += padded(text_at - at + head.n_descsz, alignment);
  }
}

std::string hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<int>(b) >> 4];
    text += kDigits[std::to_integer<int>(b) & 15];
  }
  return text;
}

}  // namespace

ElfFile ElfFile::parse(std::span<const std::byte> bytes) {
  const Elf64_Ehdr header = header_of(bytes);
  const Image image(bytes);
  const std::vector<Elf64_Phdr> segments = segments_of(image, header);
  ElfFile file;
  file.has_executable_stack = true;
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type == PT_GNU_STACK) {
      file.has_executable_stack = (s.p_flags & PF_X) != 0;
    } else if (s.p_type == PT_NOTE) {
      read_notes(image, s, file.notes);
    }
  }
  DynamicReader(image, segments).read(file);
  if (const ElfNote* id = file.find_note("GNU", NT_GNU_BUILD_ID)) {
    file.build_id = hex(id->description);
  }
  return file;
}

bool ElfFile::exports_symbol(std::string_view name) const {
  return std::any_of(exports.begin(), exports.end(),
                     [&](const ElfSymbol& s) { return s.name == name; });
}

const ElfNote* ElfFile::find_note(std::string_view owner, uint32_t type) const {
  for (const ElfNote& note : notes) {
    if (note.owner == owner && note.type == type) {
      return &note;
    }
  }
  return nullptr;
}

}  // namespace ciuic::core
