// SPDX-License-Identifier: MIT
#include "core/plugin/library_note.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <ciuic/abi/note.h>

#include "core/plugin/kind.h"

namespace ciuic::core {
namespace {

/// A text in a field of N bytes, which must end with NUL.
template <size_t N>
std::string text_of(const char (&field)[N], const char* what) {
  const void* end = std::memchr(field, '\0', N);
  if (end == nullptr) {
    throw ElfError("its note is damaged: the " + std::string(what) + " has no end");
  }
  const std::string text(field, static_cast<const char*>(end));
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      throw ElfError("its note is damaged: the " + std::string(what) + " has a control character");
    }
  }
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

NoteRecord record_of(const ciuic_note_record& r) {
  NoteRecord record;
  record.kind = r.kind;
  record.flags = r.flags;
  record.state_schema = r.state_schema;
  record.state_schema_min = r.state_schema_min;
  record.name = text_of(r.name, "name");
  record.version = text_of(r.version, "version");
  record.features = split(text_of(r.features, "features"));
  if (!is_plugin_name(record.name)) {
    throw ElfError("its note names a plugin \"" + record.name +
                   "\", expected 1 to 63 characters of a-z 0-9 _ -");
  }
  return record;
}

}  // namespace

bool is_plugin_name(std::string_view name) {
  return !name.empty() && name.size() < sizeof(ciuic_note_record::name) &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

LibraryNote LibraryNote::read(const ElfFile& file) {
  const ElfNote* note = file.find_note("ciuic", CIUIC_NOTE_TYPE);
  if (note == nullptr) {
    throw ElfError("it has no note " CIUIC_NOTE_SECTION
                   "; end its source with CIUIC_PLUGINS(...), or in C with CIUIC_NOTE_1(...)");
  }
  const std::vector<std::byte>& bytes = note->description;
  ciuic_note_header header{};
  if (bytes.size() < sizeof(header)) {
    throw ElfError("its note is damaged: it has " + std::to_string(bytes.size()) +
                   " bytes, expected at least " + std::to_string(sizeof(header)));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.layout != CIUIC_NOTE_LAYOUT) {
    throw ElfError("its note has layout " + std::to_string(header.layout) + ", this host reads " +
                   std::to_string(CIUIC_NOTE_LAYOUT) + "; rebuild it with this host's SDK");
  }
  const size_t expected = sizeof(header) + size_t{header.count} * sizeof(ciuic_note_record);
  if (header.count == 0 || header.count > CIUIC_NOTE_MAX_PLUGINS || bytes.size() != expected) {
    throw ElfError("its note is damaged: " + std::to_string(header.count) + " plugins in " +
                   std::to_string(bytes.size()) + " bytes");
  }
  LibraryNote out;
  out.abi = {header.abi_major, header.abi_minor};
  out.sdk = text_of(header.sdk, "SDK's version");
  for (uint32_t i = 0; i < header.count; ++i) {
    ciuic_note_record r{};
    std::memcpy(&r, bytes.data() + sizeof(header) + i * sizeof(r), sizeof(r));
    NoteRecord record = record_of(r);
    for (const NoteRecord& other : out.plugins) {
      if (other.kind == record.kind && other.name == record.name) {
        throw ElfError("its note names " + std::string(kind_name(record.kind)) + " " + record.name +
                       " twice");
      }
    }
    out.plugins.push_back(std::move(record));
  }
  return out;
}

}  // namespace ciuic::core
