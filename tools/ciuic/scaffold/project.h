// SPDX-License-Identifier: MIT
//
// A new plugin's project: a folder with CMakeLists.txt, one source file that passes the conformance
// kit, README.md and .gitignore.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace ciuic::tools {

enum class Language { Cpp, C };

struct ProjectRequest {
  std::string kind;  // one of the seven
  std::string name;  // lower-case letters, digits, _; begins with a letter
  Language language = Language::Cpp;
};

/// Path inside the project and text of each file. Throws Failure (Usage) for a bad kind or name.
std::vector<std::pair<std::string, std::string>> project_files(const ProjectRequest& request);

/// Writes them. Throws Failure (Usage) when the folder is there already: nothing is overwritten.
void write_project(const ProjectRequest& request, const std::filesystem::path& folder);

}  // namespace ciuic::tools
