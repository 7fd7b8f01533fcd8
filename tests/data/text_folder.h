// SPDX-License-Identifier: MIT
//
// A folder of text files that lives as long as a test.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "core/log/failure.h"

namespace ciuic::core {

class TextFolder {
 public:
  TextFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ciuic_data_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TextFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TextFolder(const TextFolder&) = delete;
  TextFolder& operator=(const TextFolder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    const std::string file = path_ + "/" + name;
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// "abc...zabc..." of so many bytes.
inline std::string letters(size_t count) {
  std::string text(count, ' ');
  for (size_t i = 0; i < count; ++i) {
    text[i] = static_cast<char>('a' + i % 26);
  }
  return text;
}

/// What a failure of usage says; "no failure" where there is none.
template <typename Call>
std::string failure_of(Call call) {
  try {
    call();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::Usage);
    return failure.what();
  }
  return "no failure";
}

}  // namespace ciuic::core
