// SPDX-License-Identifier: MIT
//
// The ELF reader and the note reader on any bytes: a refusal is an ElfError, everything else that
// comes out is inside the image that went in.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/plugin/library_note.h"
#include "expect.h"

using ciuic::core::ElfError;
using ciuic::core::ElfFile;
using ciuic::core::LibraryNote;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span image(reinterpret_cast<const std::byte*>(data), size);
  ElfFile file;
  try {
    file = ElfFile::parse(image);
  } catch (const ElfError&) {
    return 0;
  }
  size_t bytes = file.soname.size();
  for (const auto& note : file.notes) {
    bytes = std::max(bytes, note.description.size());
  }
  expect(bytes <= size, "a part of the image is larger than the image");
  try {
    const LibraryNote note = LibraryNote::read(file);
    for (const auto& plugin : note.plugins) {
      expect(ciuic::core::is_plugin_name(plugin.name), "a note with such a name is damaged");
    }
  } catch (const ElfError&) {
  }
  return 0;
}
