// SPDX-License-Identifier: MIT
//
// Folders of a test's own: one that is removed at the end, and caches that leave the user's alone.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdlib.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ciuic::core {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/ciuic-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  [[nodiscard]] std::string path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A fixture whose cache and state folders are empty and its own.
class OwnCaches : public ::testing::Test {
 protected:
  OwnCaches() {
    setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
    setenv("XDG_STATE_HOME", (folder / "state").c_str(), 1);
    std::filesystem::create_directory(folder / "plugins");
  }
  /// A copy of a built plugin in the test's folder.
  [[nodiscard]] std::string copy(const std::string& built, const std::string& name = "") const {
    const std::string file =
        (folder / "plugins/") +
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
