// SPDX-License-Identifier: MIT
#include "core/plugin/lock_file.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "core/config/nearest.h"
#include "core/config/node.h"
#include "core/config/toml_reader.h"
#include "core/log/failure.h"
#include "core/plugin/kind.h"
#include "core/plugin/library_note.h"
#include "core/plugin/open_file.h"
#include "core/plugin/sha256.h"

namespace ciuic::core {
namespace {

struct Field {
  std::string_view key;
  std::string LockedPlugin::*member;
  bool is_required;
};

constexpr std::array<Field, 7> kFields{{{"kind", &LockedPlugin::kind, true},
                                        {"name", &LockedPlugin::name, true},
                                        {"version", &LockedPlugin::version, false},
                                        {"abi", &LockedPlugin::abi, false},
                                        {"sha256", &LockedPlugin::sha256, true},
                                        {"bundle", &LockedPlugin::bundle, false},
                                        {"file", &LockedPlugin::file, false}}};

constexpr int64_t kFormat = 2;

void check_format(const Node& node, std::vector<Problem>& problems) {
  const int64_t* format = node.integer();
  if (format == nullptr || *format < 1 || *format > kFormat) {
    problems.push_back(problem_at(
        node.where, "format: got " + node.text() + ", expected 1 to " + std::to_string(kFormat)));
  }
}

void take(const Entry& entry, LockedPlugin& plugin, std::vector<Problem>& problems) {
  std::vector<std::string_view> names;
  for (const Field& field : kFields) {
    names.push_back(field.key);
    if (field.key != entry.key) {
      continue;
    }
    if (const std::string* text = entry.node.string()) {
      plugin.*field.member = *text;
    } else {
      problems.push_back(
          problem_at(entry.node.where,
                     "plugin." + entry.key + ": got " + entry.node.text() + ", expected a string"));
    }
    return;
  }
  problems.push_back(problem_at(
      entry.node.where, "plugin." + entry.key + " is no key" + suggestion(entry.key, names)));
}

/// What is wrong with a complete entry; empty when nothing is.
std::string problem_of(const LockedPlugin& plugin) {
  for (const Field& field : kFields) {
    if (field.is_required && (plugin.*field.member).empty()) {
      return "plugin." + std::string(field.key) + " is missing";
    }
  }
  if (!kind_of(plugin.kind)) {
    return "plugin.kind: got \"" + plugin.kind + "\", expected one of the seven kinds";
  }
  if (!is_plugin_name(plugin.name)) {
    return "plugin.name: got \"" + plugin.name + "\", expected a plugin's name";
  }
  if (!is_sha256(plugin.sha256)) {
    return "plugin.sha256: got \"" + plugin.sha256 + "\", expected 64 hexadecimal digits";
  }
  if (!plugin.bundle.empty() && !is_sha256(plugin.bundle)) {
    return "plugin.bundle: got \"" + plugin.bundle + "\", expected 64 hexadecimal digits";
  }
  return "";
}

}  // namespace

LockFile LockFile::parse(std::string_view text, const std::string& file,
                         std::vector<Problem>& problems) {
  LockFile lock;
  lock.path_ = file;
  const size_t before = problems.size();
  const Node root = parse_toml(text, file, problems);
  for (const Entry& entry : *root.table()) {
    if (entry.key == "format") {
      check_format(entry.node, problems);
      continue;
    }
    if (entry.key != "plugin" || entry.node.list() == nullptr) {
      problems.push_back(
          problem_at(entry.node.where, entry.key + " is no part of a lock, expected [[plugin]]"));
      continue;
    }
    for (const Node& node : *entry.node.list()) {
      if (node.table() == nullptr) {
        problems.push_back(problem_at(node.where, "plugin: expected a table: [[plugin]]"));
        continue;
      }
      const size_t first = problems.size();
      LockedPlugin plugin;
      for (const Entry& inner : *node.table()) {
        take(inner, plugin, problems);
      }
      std::string problem = problems.size() == first ? problem_of(plugin) : "";
      if (problem.empty() && lock.find(plugin.kind, plugin.name) != nullptr) {
        problem = plugin.kind + " " + plugin.name + " is locked twice";
      }
      if (!problem.empty()) {
        problems.push_back(problem_at(node.where, problem));
      } else if (problems.size() == first) {
        lock.add(std::move(plugin));
      }
    }
  }
  if (problems.size() == before && lock.plugins_.empty()) {
    problems.push_back({file, 0, 0, "it locks no plugin; write it with ciuic plugin lock"});
  }
  return lock;
}

LockFile LockFile::read(const std::string& path) {
  const auto text = read_text(path, kMaxConfigBytes);
  if (!text) {
    throw Failure(ExitCode::Usage, "the lock cannot be read",
                  "write it with ciuic plugin lock, or correct plugins.lock", {{"file", path}});
  }
  std::vector<Problem> problems;
  LockFile lock = parse(*text, path, problems);
  if (!problems.empty()) {
    Failure failure(ExitCode::Usage,
                    "the lock has " + std::to_string(problems.size()) +
                        (problems.size() == 1 ? " problem" : " problems"),
                    "write it anew with ciuic plugin lock", {{"file", path}});
    for (const Problem& problem : problems) {
      failure.detail(format(problem));
    }
    throw failure;
  }
  return lock;
}

const LockedPlugin* LockFile::find(std::string_view kind, std::string_view name) const {
  const auto at = std::find_if(plugins_.begin(), plugins_.end(), [&](const LockedPlugin& p) {
    return p.kind == kind && p.name == name;
  });
  return at != plugins_.end() ? &*at : nullptr;
}

std::string LockFile::problem_with(std::string_view kind, std::string_view name,
                                   std::string_view sha256) const {
  const std::string who = std::string(kind) + " " + std::string(name);
  const LockedPlugin* locked = find(kind, name);
  if (locked == nullptr) {
    return "the lock " + path_ + " does not name " + who + " (this file's sha256 is " +
           std::string(sha256) + ")";
  }
  if (locked->sha256 != sha256) {
    return "its sha256 is " + std::string(sha256) + ", the lock " + path_ + " says " +
           locked->sha256 + " for " + who;
  }
  return "";
}

std::string LockFile::bundle_problem(std::string_view kind, std::string_view name,
                                     std::string_view bundle) const {
  const LockedPlugin* locked = find(kind, name);
  if (locked == nullptr || bundle == (locked->bundle.empty() ? locked->sha256 : locked->bundle)) {
    return "";
  }
  return "with the libraries that it brings along its digest is " + std::string(bundle) +
         ", the lock " + path_ + " says " +
         (locked->bundle.empty() ? "that it brings none" : locked->bundle) + " for " +
         std::string(kind) + " " + std::string(name);
}

std::string LockFile::text() const {
  std::vector<LockedPlugin> sorted = plugins_;
  std::sort(sorted.begin(), sorted.end(), [](const LockedPlugin& a, const LockedPlugin& b) {
    return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
  });
  std::string out =
      "# Plugins that a run may use, by the content of their files. Written by ciuic plugin lock;\n"
      "# chosen by plugins.lock. A plugin that is not here, or differs, is refused.\n"
      "format = " +
      std::to_string(kFormat) + "\n";
  for (const LockedPlugin& plugin : sorted) {
    out += "\n[[plugin]]\n";
    for (const Field& field : kFields) {
      if (!(plugin.*field.member).empty()) {
        out += std::string(field.key) + " = " + toml_string(plugin.*field.member) + "\n";
      }
    }
  }
  return out;
}

}  // namespace ciuic::core
