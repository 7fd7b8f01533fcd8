// SPDX-License-Identifier: MIT
//
// Writes the ELF note (abi/note.h) of a library of C++ plugin classes, at compile time and from the
// same constants as the descriptors.
#pragma once

#include <array>
#include <cstddef>

#include <ciuic/abi/note.h>

namespace ciuic::detail {

template <size_t N>
struct Note {
  ciuic_note_head head;
  ciuic_note_header header;
  ciuic_note_record records[N];
};

/// Copies a text that must fit with its NUL. A longer one does not compile: indexing past the end
/// is no constant expression.
template <size_t N>
constexpr void put_text(char (&into)[N], const char* text) {
  for (size_t i = 0; text[i] != '\0'; ++i) {
    into[i] = text[i];
    into[i + 1] = '\0';
  }
}

template <size_t N, typename Features>
constexpr void put_features(char (&into)[N], const Features& features) {
  size_t used = 0;
  for (const char* feature : features) {
    if (feature == nullptr) {
      return;
    }
    if (used != 0) {
      into[used++] = ',';
    }
    for (size_t i = 0; feature[i] != '\0'; ++i) {
      into[used++] = feature[i];
    }
    into[used] = '\0';
  }
}

template <typename Plugin>
constexpr ciuic_note_record note_record() {
  ciuic_note_record record{};
  record.kind = Plugin::kind;
  record.flags = Plugin::flags;
  record.state_schema = Plugin::state_schema;
  record.state_schema_min = Plugin::state_schema_min;
  put_text(record.name, Plugin::name);
  put_text(record.version, Plugin::version);
  put_features(record.features, Plugin::features);
  return record;
}

template <typename... Plugins>
constexpr Note<sizeof...(Plugins)> make_note() {
  constexpr size_t count = sizeof...(Plugins);
  static_assert(count <= CIUIC_NOTE_MAX_PLUGINS, "too many plugins in one library");
  Note<count> note{};
  note.head.name_bytes = 6;
  note.head.description_bytes = sizeof(ciuic_note_header) + count * sizeof(ciuic_note_record);
  note.head.type = CIUIC_NOTE_TYPE;
  put_text(note.head.name, "ciuic");
  note.header.layout = CIUIC_NOTE_LAYOUT;
  note.header.count = count;
  note.header.abi_major = CIUIC_ABI_MAJOR;
  note.header.abi_minor = CIUIC_ABI_MINOR;
  put_text(note.header.sdk, CIUIC_SDK_VERSION);
  const ciuic_note_record records[count] = {note_record<Plugins>()...};
  for (size_t i = 0; i < count; ++i) {
    note.records[i] = records[i];
  }
  return note;
}

}  // namespace ciuic::detail
