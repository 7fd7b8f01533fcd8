// SPDX-License-Identifier: MIT
#include "core/plugin/library_file.h"

#include <algorithm>
#include <stdexcept>

#include "core/log/failure.h"

namespace ciuic::core {

bool LibraryFile::offers(uint32_t kind, std::string_view name) const {
  return note && std::any_of(note->plugins.begin(), note->plugins.end(),
                             [&](const NoteRecord& r) { return r.kind == kind && r.name == name; });
}

const Library& LibraryFile::library() const {
  const std::scoped_lock lock(mutex_);
  if (!library_) {
    try {
      library_.emplace(Library::open(staged));
    } catch (const std::runtime_error& e) {
      throw Failure(ExitCode::Plugin, std::string("a plugin is refused: ") + e.what(),
                    "see ciuic plugin inspect", {{"file", path}});
    }
  }
  return *library_;
}

}  // namespace ciuic::core
