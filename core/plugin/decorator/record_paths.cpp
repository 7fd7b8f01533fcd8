// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/record_paths.h"

#include <filesystem>
#include <map>

#include "core/plugin/decorator/record_file.h"
#include "core/plugin/decorator/record_header.h"
#include "core/plugin/kind.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;

/// One spelling for one place; links are followed as far as they are there.
std::string place_of(const std::string& path) {
  std::error_code ec;
  const fs::path place = fs::weakly_canonical(fs::absolute(path, ec), ec);
  return ec ? path : place.string();
}

}  // namespace

std::vector<Problem> record_problems(std::span<const DecoratedPlugin> plugins,
                                     const std::string& folder, int world) {
  std::vector<Problem> problems;
  std::map<std::string, std::string> owners;  // "optimizer adamw" by place
  for (const DecoratedPlugin& p : plugins) {
    const std::string owner = std::string(kind_name(p.kind)) + " " + p.plugin;
    for (const DecoratorSpec& spec : p.decorators) {
      const auto* record = std::get_if<RecordSpec>(&spec.what);
      if (record == nullptr) {
        continue;
      }
      // Ranks differ by {rank} alone, so the first stands for all.
      DecoratorContext context;
      context.kind = p.kind;
      context.plugin = p.plugin;
      context.world = world;
      context.folder = folder;
      const std::string path = record_path(*record, context);
      const std::string who = std::string(kind_name(p.kind)) + ".decorate: record of " + owner;
      if (const auto [at, is_new] = owners.emplace(place_of(path), owner); !is_new) {
        problems.push_back(
            problem_at(spec.where, who + " and one of " + at->second + " would both write " + path +
                                       "; give each a path, or use {kind} and {plugin}"));
      } else if (const std::string why = record_obstacle(path); !why.empty()) {
        problems.push_back(problem_at(
            spec.where, who + " cannot write " + path + ": " + why + "; choose another path"));
      }
    }
  }
  return problems;
}

}  // namespace ciuic::core
