// SPDX-License-Identifier: MIT
#include "tools/ciuic/scaffold/project.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>

#include "core/log/failure.h"
#include "core/plugin/kind.h"
#include "tools/ciuic/scaffold/template_files.h"

namespace ciuic::tools {
namespace {

namespace fs = std::filesystem;
using core::ExitCode;
using core::Failure;

/// my_ring -> MyRing
std::string class_name(const std::string& name) {
  std::string out;
  bool is_first = true;
  for (const char c : name) {
    if (c == '_') {
      is_first = true;
      continue;
    }
    out += is_first ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    is_first = false;
  }
  return out;
}

std::string replace_all(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string fill(const std::string& template_name, const ProjectRequest& request) {
  for (const TemplateFile& file : template_files()) {
    if (file.name == template_name) {
      std::string text(file.text);
      text = replace_all(std::move(text), "@name@", request.name);
      text = replace_all(std::move(text), "@Class@", class_name(request.name));
      text = replace_all(std::move(text), "@choice@",
                         request.kind == "profiler" ? "plugins = [\"" + request.name + "\"]"
                                                    : "plugin = \"" + request.name + "\"");
      text = replace_all(std::move(text), "@source@",
                         request.name + (request.language == Language::C ? ".c" : ".cpp"));
      return replace_all(std::move(text), "@kind@", request.kind);
    }
  }
  throw Failure(ExitCode::Internal, "there is no template " + template_name);
}

void check_kind(const std::string& kind) {
  if (core::kind_of(kind)) {
    return;
  }
  std::string kinds;
  for (const core::KindName& k : core::kKinds) {
    kinds += (kinds.empty() ? "" : ", ") + std::string(k.name);
  }
  throw Failure(ExitCode::Usage, "plugin new: got kind \"" + kind + "\", expected one of " + kinds,
                "ciuic plugin new communicator my_ring");
}

void check_name(const std::string& name) {
  const bool fits = !name.empty() && name.size() <= 40 && name[0] >= 'a' && name[0] <= 'z' &&
                    name.back() != '_' &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
                    });
  if (!fits) {
    throw Failure(ExitCode::Usage,
                  "plugin new: got name \"" + name +
                      "\", expected 1 to 40 of a-z, 0-9 and _, beginning with a letter",
                  "ciuic plugin new communicator my_ring");
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> project_files(const ProjectRequest& request) {
  check_kind(request.kind);
  check_name(request.name);
  const bool is_c = request.language == Language::C;
  return {
      {"CMakeLists.txt", fill("CMakeLists.txt.in", request)},
      {request.name + (is_c ? ".c" : ".cpp"),
       fill(request.kind + (is_c ? ".c.in" : ".cpp.in"), request)},
      {"README.md", fill("README.md.in", request)},
      {".gitignore", "build/\n"},
  };
}

void write_project(const ProjectRequest& request, const fs::path& folder) {
  const auto files = project_files(request);
  std::error_code ec;
  fs::create_directories(folder.has_parent_path() ? folder.parent_path() : fs::path("."), ec);
  if (!fs::create_directory(folder, ec)) {
    throw Failure(ExitCode::Usage,
                  "plugin new: " + folder.string() +
                      (ec ? " cannot be made: " + ec.message() : " is there already"),
                  "give another --to FOLDER");
  }
  for (const auto& [name, text] : files) {
    std::ofstream out(folder / name, std::ios::binary);
    out << text;
    if (!out.flush()) {
      throw Failure(ExitCode::Storage, "cannot write " + (folder / name).string());
    }
  }
}

}  // namespace ciuic::tools
