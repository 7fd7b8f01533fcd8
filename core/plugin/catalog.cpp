// SPDX-License-Identifier: MIT
#include "core/plugin/catalog.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>

#include <ciuic/view.hpp>

#include "core/log/failure.h"
#include "core/plugin/descriptor_check.h"
#include "core/plugin/kind.h"
#include "core/plugin/library.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> libraries_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    if (entry.path().extension() == ".so") {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Maps a file and adds what it offers to the listing.
void read_library(const std::string& path, Listing& out) {
  try {
    const Library library = Library::open(path);
    for (const ciuic_descriptor* d : library.descriptors()) {
      if (std::string problem = descriptor_problem(*d); !problem.empty()) {
        out.refused.push_back({path, "descriptor: " + problem});
        continue;
      }
      out.plugins.push_back({d, path, false});
    }
  } catch (const std::runtime_error& e) {
    out.refused.push_back({path, e.what()});
  }
}

void mark_shadowed(std::vector<FoundPlugin>& plugins) {
  std::set<std::pair<uint32_t, std::string>> seen;
  for (FoundPlugin& p : plugins) {
    p.shadowed = !seen.insert({p.descriptor->kind, p.descriptor->name}).second;
  }
}

Failure not_found(uint32_t kind, std::string_view name, const std::vector<std::string>& folders,
                  const Listing& all) {
  std::string there;
  for (const FoundPlugin& p : all.plugins) {
    if (p.descriptor->kind == kind && !p.shadowed) {
      there += std::string(there.empty() ? "" : ", ") + p.descriptor->name;
    }
  }
  const std::string kind_text(kind_name(kind));
  Failure failure(ExitCode::Plugin,
                  "no " + kind_text + " plugin is named \"" + std::string(name) +
                      "\"; there are: " + (there.empty() ? "none" : there),
                  "choose one of these, or add its folder to plugins.path or CIUIC_PLUGIN_PATH");
  for (const std::string& folder : folders) {
    std::error_code ec;
    failure.detail("looked in " + folder + (fs::is_directory(folder, ec) ? "" : " (not a folder)"));
  }
  for (const RefusedFile& r : all.refused) {
    failure.detail("refused " + r.path + ": " + r.reason);
  }
  return failure;
}

bool is_plugin_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

}  // namespace

Catalog::Catalog(std::vector<std::string> folders) : folders_(std::move(folders)) {}

std::vector<std::string> Catalog::search_path(const std::vector<std::string>& configured) {
  std::vector<std::string> folders = configured;
  if (const char* env = std::getenv("CIUIC_PLUGIN_PATH"); env != nullptr) {
    std::stringstream stream(env);
    for (std::string folder; std::getline(stream, folder, ':');) {
      if (!folder.empty()) {
        folders.push_back(folder);
      }
    }
  }
  std::error_code ec;
  const fs::path binary = fs::read_symlink("/proc/self/exe", ec);
  if (!ec) {
    const fs::path beside = binary.parent_path().parent_path();
    folders.push_back((beside / "plugins").string());
    folders.push_back((beside / "lib" / "ciuic" / "plugins").string());
  }
  std::vector<std::string> unique;
  std::set<std::string> seen;
  for (const std::string& folder : folders) {
    if (seen.insert(fs::weakly_canonical(folder, ec).string()).second) {
      unique.push_back(folder);
    }
  }
  return unique;
}

FoundPlugin Catalog::find(uint32_t kind, std::string_view name) const {
  const auto wanted = [&](const FoundPlugin& p) {
    return p.descriptor->kind == kind && p.descriptor->name == name;
  };
  for (const std::string& folder : folders_) {
    if (!is_plugin_name(name)) {
      break;  // it could be a path, which names no plugin
    }
    const std::string path = (fs::path(folder) / ("lib" + std::string(name) + ".so")).string();
    std::error_code ec;
    if (!fs::exists(path, ec)) {
      continue;
    }
    Listing one;
    read_library(path, one);
    const auto hit = std::find_if(one.plugins.begin(), one.plugins.end(), wanted);
    if (hit != one.plugins.end()) {
      return *hit;
    }
    if (!one.refused.empty()) {
      throw Failure(ExitCode::Plugin,
                    std::string(kind_name(kind)) + " plugin \"" + std::string(name) +
                        "\" is refused: " + one.refused.front().reason,
                    "see ciuic plugin inspect", {{"file", path}});
    }
  }
  const Listing all = list();
  const auto hit = std::find_if(all.plugins.begin(), all.plugins.end(), wanted);
  if (hit != all.plugins.end()) {
    return *hit;
  }
  throw not_found(kind, name, folders_, all);
}

Listing Catalog::list() const {
  Listing all;
  for (const std::string& folder : folders_) {
    for (const std::string& path : libraries_in(folder)) {
      read_library(path, all);
    }
  }
  mark_shadowed(all.plugins);
  return all;
}

}  // namespace ciuic::core
