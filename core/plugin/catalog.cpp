// SPDX-License-Identifier: MIT
#include "core/plugin/catalog.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>

#include "core/config/joined.h"
#include "core/log/failure.h"
#include "core/plugin/kind.h"
#include "core/plugin/loading_pipeline.h"
#include "core/plugin/trampoline/breadcrumb.h"
#include "core/plugin/trampoline/slots.h"

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

constexpr const char* kNoFolder = "not a folder";

/// Why nothing in the folder can be found; empty when it can be read.
std::string folder_problem(const std::string& folder) {
  std::error_code ec;
  const fs::directory_iterator any(folder, ec);
  if (ec == std::errc::no_such_file_or_directory || ec == std::errc::not_a_directory) {
    return kNoFolder;
  }
  return ec ? ec.message() : "";
}

RefusedFile refused(const LibraryFile& file) {
  return {file.path, file.refusal->text(), file.refusal->remedy};
}

Failure refusal(uint32_t kind, std::string_view name, const LibraryFile& file) {
  const RefusedFile r = refused(file);
  return Failure(ExitCode::Plugin,
                 std::string(kind_name(kind)) + " plugin \"" + std::string(name) +
                     "\" is refused: " + r.reason,
                 r.remedy.empty() ? "see ciuic plugin inspect " + file.path : r.remedy,
                 {{"file", file.path}});
}

void mark_shadowed(std::vector<FoundPlugin>& plugins) {
  std::set<std::pair<uint32_t, std::string>> seen;
  for (FoundPlugin& p : plugins) {
    p.shadowed = !seen.insert({p.descriptor->kind, p.descriptor->name}).second;
  }
}

/// `all` are the files on the path, examined.
Failure not_found(uint32_t kind, std::string_view name, const std::vector<std::string>& folders,
                  const std::vector<std::shared_ptr<LibraryFile>>& all) {
  std::set<std::string> names;
  for (const auto& file : all) {
    for (const NoteRecord& r : file->note ? file->note->plugins : std::vector<NoteRecord>{}) {
      if (r.kind == kind && !file->refusal) {
        names.insert(r.name);
      }
    }
  }
  const std::string there = joined(names, ", ");
  const std::string kind_text(kind_name(kind));
  Failure failure(ExitCode::Plugin,
                  "no " + kind_text + " plugin is named \"" + std::string(name) +
                      "\"; there are: " + (there.empty() ? "none" : there),
                  "choose one of these, or add its folder to plugins.path or CIUIC_PLUGIN_PATH");
  for (const std::string& folder : folders) {
    const std::string problem = folder_problem(folder);
    failure.detail("looked in " + folder + (problem.empty() ? "" : " (" + problem + ")"));
  }
  for (const auto& file : all) {
    if (file->refusal) {
      failure.detail("refused " + file->path + ": " + file->refusal->text());
    }
  }
  return failure;
}

}  // namespace

const ciuic_descriptor* FoundPlugin::load() const {
  // Constructors and the query are the plugin's code too: a crash or a hang there has its name.
  const CrumbScope crumb(identity_of(descriptor->kind, descriptor->name, descriptor->version),
                         kLoadCall, 0);
  for (const ciuic_descriptor* d : file->library().descriptors()) {
    if (d->kind == descriptor->kind && descriptor->name == d->name) {
      if (is_same(*DescriptorInfo::of(*d), *descriptor)) {
        return d;
      }
      break;
    }
  }
  throw Failure(ExitCode::Plugin,
                std::string(kind_name(descriptor->kind)) + " plugin \"" + descriptor->name +
                    "\" is refused: load: it shows another descriptor than in the probe",
                "what it declares must not depend on where it runs", {{"file", path}});
}

Catalog::Catalog(std::vector<std::string> folders, LoadRules rules)
    : folders_(std::move(folders)),
      pipeline_(std::make_shared<LoadingPipeline>(std::move(rules))) {}

std::vector<std::string> Catalog::search_path(const std::vector<std::string>& configured,
                                              bool allow_environment) {
  std::vector<std::string> folders = configured;
  // Not for a program that runs with more rights than its caller.
  const char* env = allow_environment ? secure_getenv("CIUIC_PLUGIN_PATH") : nullptr;
  if (env != nullptr) {
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

std::vector<std::string> Catalog::files() const {
  std::vector<std::string> all;
  for (const std::string& folder : folders_) {
    const std::vector<std::string> some = libraries_in(folder);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::shared_ptr<LibraryFile> Catalog::locate(uint32_t kind, std::string_view name) const {
  for (const std::string& folder : folders_) {
    if (!is_plugin_name(name)) {
      break;  // it could be a path, which names no plugin
    }
    const std::string path = (fs::path(folder) / ("lib" + std::string(name) + ".so")).string();
    std::error_code ec;
    if (!fs::exists(fs::symlink_status(path, ec))) {
      continue;
    }
    auto file = pipeline_->examine(path);
    if (file->offers(kind, name) || !file->note) {
      return file;  // also one that is refused before its note could be read: its name is meant
    }
  }
  for (const std::string& path : files()) {
    auto file = pipeline_->examine(path);
    if (file->offers(kind, name)) {
      return file;
    }
  }
  return nullptr;
}

void Catalog::prepare(const std::vector<std::pair<uint32_t, std::string>>& wanted) const {
  std::vector<std::shared_ptr<LibraryFile>> found;
  for (const auto& [kind, name] : wanted) {
    if (auto file = locate(kind, name)) {
      found.push_back(std::move(file));
    }
  }
  pipeline_->admit(found);
}

FoundPlugin Catalog::find(uint32_t kind, std::string_view name) const {
  const std::shared_ptr<LibraryFile> file = locate(kind, name);
  if (file == nullptr) {
    std::vector<std::shared_ptr<LibraryFile>> all;
    for (const std::string& path : files()) {
      all.push_back(pipeline_->examine(path));
    }
    throw not_found(kind, name, folders_, all);
  }
  pipeline_->admit({file});
  if (file->refusal) {
    throw refusal(kind, name, *file);
  }
  for (const auto& plugin : file->plugins) {
    if (plugin->kind == kind && plugin->name == name) {
      return {plugin, file->path, false, file};
    }
  }
  throw Failure(ExitCode::Internal, "a plugin that a note names is not there", "",
                {{"file", file->path}});
}

std::vector<FoundPlugin> Catalog::all_of(uint32_t kind) const {
  std::vector<std::shared_ptr<LibraryFile>> files_of_kind;
  for (const std::string& path : files()) {
    auto file = pipeline_->examine(path);
    for (const NoteRecord& r : file->note ? file->note->plugins : std::vector<NoteRecord>{}) {
      if (r.kind == kind) {
        files_of_kind.push_back(file);
        break;
      }
    }
  }
  std::vector<FoundPlugin> found;
  for (FoundPlugin& p : list(files_of_kind).plugins) {
    if (p.descriptor->kind == kind && !p.shadowed) {
      found.push_back(std::move(p));
    }
  }
  return found;
}

Listing Catalog::list() const {
  std::vector<std::shared_ptr<LibraryFile>> all;
  for (const std::string& path : files()) {
    all.push_back(pipeline_->examine(path));
  }
  Listing listing = list(all);
  for (const std::string& folder : folders_) {
    // A folder that is not there is none of this machine's: the search path names such, too.
    if (const std::string problem = folder_problem(folder);
        !problem.empty() && problem != kNoFolder) {
      listing.refused.push_back({folder, "resolve: the folder cannot be read: " + problem,
                                 "may you read it, and enter those above it?"});
    }
  }
  return listing;
}

Listing Catalog::list(const std::vector<std::shared_ptr<LibraryFile>>& all) const {
  pipeline_->admit(all);
  Listing listing;
  for (const auto& file : all) {
    if (file->refusal) {
      listing.refused.push_back(refused(*file));
    }
    for (const auto& plugin : file->plugins) {
      listing.plugins.push_back({plugin, file->path, false, file});
    }
  }
  mark_shadowed(listing.plugins);
  return listing;
}

std::shared_ptr<const LibraryFile> Catalog::examine(const std::string& path) const {
  return pipeline_->examine(path);
}

std::shared_ptr<const LibraryFile> Catalog::look(const std::string& path) const {
  auto file = pipeline_->examine(path);
  pipeline_->admit({file});
  return file;
}

std::vector<std::string> Catalog::validate(
    const std::vector<std::pair<const FoundPlugin*, const PluginOptions*>>& plugins,
    const Placement& placement) const {
  std::vector<ValidateCall> calls;
  for (const auto& [plugin, options] : plugins) {
    calls.push_back({*plugin->file, *plugin->descriptor, *options, placement});
  }
  return pipeline_->validate(calls);
}

}  // namespace ciuic::core
