// SPDX-License-Identifier: MIT
//
// A copy of the library under another path: the loader takes it for another library and maps it
// anew, with static objects that nobody has touched.
#pragma once

#include <filesystem>
#include <string>

namespace ciuic::testing {

/// What lies beside the library comes along as links, for dependencies found by $ORIGIN.
inline std::string copy_library(const std::string& path, const std::string& folder) {
  namespace fs = std::filesystem;
  fs::create_directories(folder);
  const fs::path original(path);
  const fs::path copy = fs::path(folder) / original.filename();
  fs::copy_file(original, copy, fs::copy_options::overwrite_existing);
  for (const fs::directory_entry& entry : fs::directory_iterator(original.parent_path())) {
    const fs::path link = fs::path(folder) / entry.path().filename();
    if (!fs::exists(fs::symlink_status(link))) {
      fs::create_symlink(entry.path(), link);
    }
  }
  return copy.string();
}

}  // namespace ciuic::testing
