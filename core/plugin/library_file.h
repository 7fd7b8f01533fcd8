// SPDX-License-Identifier: MIT
//
// Everything that is known about one plugin file, as far as the pipeline came with it
// (loading_pipeline.h). After that it is read only and shared.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/plugin/descriptor_info.h"
#include "core/plugin/elf_file.h"
#include "core/plugin/library.h"
#include "core/plugin/library_note.h"
#include "core/plugin/probe.h"

namespace ciuic::core {

struct LibraryFile {
  std::string path;    // as it was found
  std::string sha256;  // empty: the pipeline did not come so far; likewise below
  size_t bytes = 0;
  std::optional<ElfFile> elf;
  std::optional<LibraryNote> note;
  std::string staged;
  std::string digest;               // of the plugin and what it brings along
  std::string bundle;               // the same for a lock; its sha256 when it brings nothing along
  std::vector<std::string> brings;  // what is staged with it
  std::vector<std::shared_ptr<const DescriptorInfo>> plugins;
  bool stays_resident = true;  // measured: it is still mapped after dlclose
  bool is_from_cache = false;
  std::vector<std::string> warnings;
  std::vector<std::string> steps;  // those that went well, in order
  std::optional<Refusal> refusal;

  /// Does its note name this plugin?
  [[nodiscard]] bool offers(uint32_t kind, std::string_view name) const;
  /// The mapped library, mapped at the first call. Throws Failure (Plugin).
  [[nodiscard]] const Library& library() const;

 private:
  mutable std::mutex mutex_;
  mutable std::optional<Library> library_;
};

}  // namespace ciuic::core
