// SPDX-License-Identifier: MIT
#include "core/train/unused_tables.h"

#include <algorithm>
#include <set>

#include "core/plugin/kind.h"

namespace ciuic::core {
namespace {

/// "<kind>.<plugin>" of all that this run uses, or may.
std::set<std::string> used_tables(const RunPlan& plan) {
  std::set<std::string> used;
  for (const auto& [kind, name] : chosen_plugins(plan.config)) {
    used.insert(kind + "." + name);
  }
  for (const auto& [table, candidate] : plan.candidates) {
    used.insert(table);
  }
  if (plan.config.communicator.is_auto()) {
    for (const std::string& name : communicators_of_auto(plan.catalog)) {
      used.insert("communicator." + name);
    }
  }
  return used;
}

/// "sharding.plugin is "ddp"".
std::string choice_of(const RunConfig& config, const std::string& kind) {
  if (kind == kind_name(CIUIC_KIND_PROFILER)) {
    return "it is not among profiler.plugins";
  }
  if (kind == kind_name(CIUIC_KIND_COMMUNICATOR) && config.communicator.is_auto()) {
    return "communicator.plugin is \"auto\", which does not choose it";
  }
  const auto chosen = chosen_plugins(config);
  const auto of_kind = std::find_if(chosen.begin(), chosen.end(),
                                    [&kind](const auto& c) { return c.first == kind; });
  return kind + ".plugin is \"" + of_kind->second + "\"";
}

}  // namespace

std::vector<std::string> unused_tables(const RunPlan& plan) {
  const std::set<std::string> used = used_tables(plan);
  std::vector<std::string> warnings;
  for (const auto& [table, node] : plan.config.plugin_tables) {
    const size_t dot = table.find('.');
    const std::string kind = table.substr(0, dot);
    const std::string name = table.substr(dot + 1);
    if (used.count(table) != 0 || node.table() == nullptr) {
      continue;
    }
    if (!plan.catalog.offers(*kind_of(kind), name)) {
      warnings.push_back(format(
          problem_at(node.where, "[" + table + "] has no effect: no " + kind +
                                     " plugin of that name is there (see ciuic plugin list)")));
      continue;
    }
    for (const Entry& entry : *node.table()) {
      if (entry.node.where.is_override()) {
        warnings.push_back(format(problem_at(
            entry.node.where,
            table + "." + entry.key + " has no effect: " + choice_of(plan.config, kind))));
      }
    }
  }
  return warnings;
}

}  // namespace ciuic::core
