// SPDX-License-Identifier: MIT
//
// The host reads the note before it runs any of the library's code, and believes it: so it must say
// what the descriptors say.
#include <cstring>

#include "elf_file.hpp"
#include "static_tests.hpp"

namespace ciuic::testing {
namespace {

std::string text(const char* s) { return s == nullptr ? "" : s; }

struct Note {
  ciuic_note_header header{};
  std::vector<ciuic_note_record> records;
};

Note parse(const std::string& description) {
  Note out;
  require(description.size() >= sizeof(out.header),
          "the note is " + std::to_string(description.size()) + " bytes, shorter than its header");
  std::memcpy(&out.header, description.data(), sizeof(out.header));
  require(out.header.layout == CIUIC_NOTE_LAYOUT,
          "the note's layout is " + std::to_string(out.header.layout) + ", expected " +
              std::to_string(CIUIC_NOTE_LAYOUT));
  require(out.header.count >= 1 && out.header.count <= CIUIC_NOTE_MAX_PLUGINS,
          "the note counts " + std::to_string(out.header.count) + " plugins");
  const size_t expected = sizeof(out.header) + out.header.count * sizeof(ciuic_note_record);
  require(description.size() == expected,
          "the note is " + std::to_string(description.size()) + " bytes, expected " +
              std::to_string(expected) + " for " + std::to_string(out.header.count) + " plugins");
  out.records.resize(out.header.count);
  std::memcpy(out.records.data(), description.data() + sizeof(out.header),
              out.header.count * sizeof(ciuic_note_record));
  return out;
}

Note note_of(const std::string& path) {
  std::vector<std::string> found;
  for (const ElfNote& note : ElfFile(path).notes()) {
    if (note.name == "ciuic" && note.type == CIUIC_NOTE_TYPE) {
      found.push_back(note.description);
    }
  }
  require(!found.empty(),
          "the library has no ciuic note; end its source with CIUIC_PLUGINS, or in C with "
          "CIUIC_NOTE_1, and keep section " CIUIC_NOTE_SECTION " when stripping");
  require(found.size() == 1, "the library has " + std::to_string(found.size()) +
                                 " ciuic notes, expected one: CIUIC_PLUGINS stands in one source "
                                 "file only");
  return parse(found.front());
}

template <size_t N>
std::string text_of(const char (&field)[N], const char* what) {
  require(std::memchr(field, '\0', N) != nullptr,
          std::string("the note's ") + what + " does not end with NUL");
  return field;
}

std::string joined(const char* const* features) {
  std::string out;
  for (; features != nullptr && *features != nullptr; ++features) {
    out += (out.empty() ? "" : ",") + std::string(*features);
  }
  return out;
}

void compare(const std::string& what, const std::string& note, const std::string& descriptor) {
  require(note == descriptor,
          what + ": the note says \"" + note + "\", the descriptor says \"" + descriptor + "\"");
}
void compare(const std::string& what, uint32_t note, uint32_t descriptor) {
  compare(what, std::to_string(note), std::to_string(descriptor));
}

void compare(uint32_t index, const ciuic_note_record& note, const ciuic_descriptor& d) {
  const std::string plugin = "plugin " + std::to_string(index) + ", ";
  compare(plugin + "name", text_of(note.name, "name"), text(d.name));
  compare(plugin + "version", text_of(note.version, "version"), text(d.version));
  compare(plugin + "features", text_of(note.features, "features"), joined(d.features));
  compare(plugin + "kind", note.kind, d.kind);
  compare(plugin + "flags", note.flags, d.flags);
  compare(plugin + "state_schema", note.state_schema, d.state_schema);
  compare(plugin + "state_schema_min", note.state_schema_min, d.state_schema_min);
}

}  // namespace

void note_equals_the_descriptors(const TestContext& t) {
  const Note note = note_of(t.path);
  compare("ABI major", note.header.abi_major, t.plugin.descriptor().abi_major);
  compare("ABI minor", note.header.abi_minor, t.plugin.descriptor().abi_minor);
  text_of(note.header.sdk, "sdk");
  for (uint32_t i = 0; i < note.header.count; ++i) {
    const ciuic_descriptor* d = t.plugin.query(CIUIC_ABI_MAJOR, i);
    require(d != nullptr, "the note counts " + std::to_string(note.header.count) +
                              " plugins, but query(" + std::to_string(i) + ") is NULL");
    compare(i, note.records[i], *d);
  }
  require(t.plugin.query(CIUIC_ABI_MAJOR, note.header.count) == nullptr,
          "query shows more plugins than the note's " + std::to_string(note.header.count));
}

}  // namespace ciuic::testing
