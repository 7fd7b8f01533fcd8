// SPDX-License-Identifier: MIT
//
// The files of sdk/scaffold, compiled in. @name@ stands for the plugin's name, @Class@ for it in
// CamelCase, @kind@ for its kind.
#pragma once

#include <string_view>
#include <vector>

namespace ciuic::tools {

struct TemplateFile {
  std::string_view name;  // "profiler.cpp.in"
  std::string_view text;
};

const std::vector<TemplateFile>& template_files();

}  // namespace ciuic::tools
