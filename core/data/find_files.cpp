// SPDX-License-Identifier: MIT
#include "core/data/find_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <glob.h>
#include <string_view>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

bool is_glob(const std::string& pattern) {
  return pattern.find_first_of("*?[") != std::string::npos;
}

std::vector<std::string> glob_files(const std::string& pattern) {
  glob_t found{};
  const int result = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> files;
  for (size_t i = 0; result == 0 && i < found.gl_pathc; ++i) {
    files.emplace_back(found.gl_pathv[i]);
  }
  globfree(&found);
  // A pattern also matches folders, which nobody means.
  std::erase_if(files, [](const std::string& file) {
    std::error_code error;
    return std::filesystem::is_directory(file, error);
  });
  return files;
}

/// A file whose name has glob characters is that file, if it is there.
std::vector<std::string> expand(const std::string& pattern, const std::string& key) {
  std::error_code error;
  if (std::filesystem::is_directory(pattern, error)) {
    throw Failure(ExitCode::Usage, key + ": " + pattern + " is a folder",
                  "name its files: " + pattern + "/*.txt");
  }
  if (std::filesystem::exists(pattern, error)) {
    return {pattern};
  }
  std::vector<std::string> files =
      is_glob(pattern) ? glob_files(pattern) : std::vector<std::string>();
  if (files.empty()) {
    throw Failure(ExitCode::Usage,
                  key + ": " + (is_glob(pattern) ? "no file matches " : "no such file: ") + pattern,
                  "relative paths start at " + std::filesystem::current_path(error).string());
  }
  return files;
}

std::string ending_of(const std::string& file) {
  return std::filesystem::path(file).extension().string();
}

void refuse_other_kinds(const std::string& file, const std::string& key) {
  constexpr std::array<std::string_view, 6> kOthers{".parquet", ".arrow", ".gz",
                                                    ".zst",     ".xz",    ".safetensors"};
  const std::string ending = ending_of(file);
  if (std::find(kOthers.begin(), kOthers.end(), ending) != kOthers.end()) {
    throw Failure(ExitCode::Usage, key + ": " + file + ": " + ending + " is not read",
                  "give plain UTF-8 text, .jsonl, or tokens as .bin", {{"file", file}});
  }
}

/// An index stands for its tokens.
std::string tokens_of_index(const std::string& file) {
  return ending_of(file) == ".idx" ? std::filesystem::path(file).replace_extension(".bin").string()
                                   : file;
}

}  // namespace

FileKind kind_of_file(const std::string& file) {
  const std::string ending = ending_of(file);
  return ending == ".jsonl" ? FileKind::JsonLines
         : ending == ".bin" ? FileKind::Tokens
                            : FileKind::Text;
}

std::vector<std::string> find_files(const std::vector<std::string>& patterns,
                                    const std::string& key) {
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    for (const std::string& file : expand(pattern, key)) {
      refuse_other_kinds(file, key);
      files.push_back(tokens_of_index(file));
    }
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace ciuic::core
