// SPDX-License-Identifier: MIT
//
// Caches that leave the user's alone, and files as bytes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace ciuic::core {

/// A fixture whose cache and state folders are empty and its own.
class OwnCaches : public ::testing::Test {
 protected:
  OwnCaches() {
    setenv("XDG_CACHE_HOME", folder.file("cache").c_str(), 1);
    setenv("XDG_STATE_HOME", folder.file("state").c_str(), 1);
    std::filesystem::create_directory(folder.file("plugins"));
  }
  /// A copy of a built plugin in the test's folder.
  [[nodiscard]] std::string copy(const std::string& built, const std::string& name = "") const {
    const std::string file =
        folder.file("plugins/") +
        (name.empty() ? std::filesystem::path(built).filename().string() : name);
    std::filesystem::copy_file(built, file);
    return file;
  }
  [[nodiscard]] std::string broken(const std::string& name) const {
    return copy(std::string(CIUIC_BROKEN_PLUGINS) + "/lib" + name + ".so");
  }

  TemporaryFolder folder;
};

inline std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

inline void write_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

}  // namespace ciuic::core
