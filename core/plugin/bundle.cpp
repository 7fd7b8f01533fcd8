// SPDX-License-Identifier: MIT
//
// What a plugin brings along: the libraries that the loader would find for it through $ORIGIN.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "core/plugin/sha256.h"
#include "core/plugin/staging.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBundled = 64;
constexpr size_t kMaxCopied = size_t{64} << 20;  // a larger one, such as LibTorch, stays in place

/// Folders of a search list that are named through $ORIGIN; the loader knows the others as they are.
std::vector<fs::path> origin_folders(const std::vector<std::string>& list, const fs::path& origin) {
  std::vector<fs::path> folders;
  for (const std::string& entry : list) {
    for (const std::string_view token : {"$ORIGIN", "${ORIGIN}"}) {
      if (entry.rfind(token, 0) == 0) {
        folders.push_back((origin / ("./" + entry.substr(token.size()))).lexically_normal());
      }
    }
  }
  return folders;
}

/// Walks the dependencies, each file once.
class Collector {
 public:
  Collector(Trust rule, const TrustContext& context) : rule_(rule), context_(context) {}

  void add_needed_of(const fs::path& path, const ElfFile& file) {
    const fs::path origin = path.parent_path();
    std::vector<fs::path> folders = origin_folders(file.runpath, origin);
    if (file.runpath.empty()) {
      // DT_RPATH also serves what a library's dependencies need, unless they have a RUNPATH.
      const auto own = origin_folders(file.rpath, origin);
      inherited_.insert(inherited_.end(), own.begin(), own.end());
      folders = inherited_;
    }
    for (const std::string& name : file.needed) {
      add(name, folders);
    }
  }

  std::map<std::string, BundledFile> found;  // by original path

 private:
  void add(const std::string& name, const std::vector<fs::path>& folders) {
    for (const fs::path& folder : folders) {
      const fs::path path = folder / name;
      std::error_code ec;
      if (name.find('/') != std::string::npos || !fs::exists(path, ec)) {
        continue;
      }
      if (found.count(path.string()) == 0) {
        add_file(path);
      }
      return;
    }
  }

  void add_file(const fs::path& path) {
    if (found.size() == kMaxBundled) {
      throw ElfError("it brings more than " + std::to_string(kMaxBundled) + " libraries along");
    }
    // libfoo.so.1 is mostly a link to libfoo.so.1.2, beside it: what it names is judged and copied.
    std::error_code ec;
    const fs::path real = fs::canonical(path, ec);
    auto opened = open_trusted(ec ? path.string() : real.string(), rule_, context_);
    if (const auto* problem = std::get_if<TrustProblem>(&opened)) {
      throw ElfError("its dependency " + path.string() + " is not trusted: " + problem->reason +
                     (problem->remedy.empty() ? "" : "; " + problem->remedy));
    }
    BundledFile file;
    file.path = path.string();
    file.size = fs::file_size(path, ec);
    if (file.size > kMaxCopied) {
      file.is_linked = true;
      found.emplace(path.string(), std::move(file));
      return;
    }
    const auto bytes = std::get<OpenFile>(opened).read_all(kMaxCopied);
    if (!bytes) {
      throw ElfError("its dependency " + path.string() + " cannot be read");
    }
    file.bytes = *bytes;
    const ElfFile elf = ElfFile::parse(file.bytes);
    found.emplace(path.string(), std::move(file));
    add_needed_of(path, elf);
  }

  Trust rule_;
  const TrustContext& context_;
  std::vector<fs::path> inherited_;
};

/// The deepest folder that all lie in.
fs::path common_folder(fs::path folder, const std::map<std::string, BundledFile>& files) {
  for (const auto& [path, file] : files) {
    while (folder != folder.root_path() && path.rfind(folder.string() + "/", 0) != 0) {
      folder = folder.parent_path();
    }
  }
  return folder;
}

}  // namespace

Bundle bundle_of(const std::string& path, const ElfFile& file, const std::string& hash, Trust rule,
                 const TrustContext& context) {
  Bundle bundle;
  const fs::path plugin = fs::path(path).lexically_normal();
  Collector collector(rule, context);
  collector.add_needed_of(plugin, file);
  if (collector.found.empty()) {
    bundle.digest = hash;
    bundle.locked = hash;
    bundle.relative = plugin.filename().string();
    return bundle;
  }
  const fs::path root = common_folder(plugin.parent_path(), collector.found);
  bundle.relative = plugin.lexically_relative(root).string();
  std::string all = bundle.relative + " " + hash + "\n";
  std::string locked = all;
  for (auto& [original, dependency] : collector.found) {
    dependency.relative = fs::path(original).lexically_relative(root).string();
    const std::string content = dependency.is_linked ? "" : sha256(dependency.bytes);
    all += dependency.relative + " " + (dependency.is_linked ? "at " + original : content) + "\n";
    locked += dependency.relative + " " +
              (dependency.is_linked ? std::to_string(dependency.size) + " bytes" : content) + "\n";
    bundle.dependencies.push_back(std::move(dependency));
  }
  bundle.digest = sha256(all);
  bundle.locked = sha256(locked);
  return bundle;
}

}  // namespace ciuic::core
