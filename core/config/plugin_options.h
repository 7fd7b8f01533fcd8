// SPDX-License-Identifier: MIT
//
// A plugin's table turned into the options that it declared: typed, in range, defaults filled in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ciuic/abi/plugin.h>

#include "core/config/config_text.h"
#include "core/config/node.h"
#include "core/config/problem.h"

namespace ciuic::core {

/// Owns what its array shows. Movable: the array stays valid.
class PluginOptions {
 public:
  /// Values for options that the table leaves out, used if the plugin declares them: how
  /// communicator.timeout reaches a communicator.
  using Fallbacks = std::vector<std::pair<std::string, Node>>;

  /// `specs` is a ciuic_array of ciuic_option_spec; it must outlive the call only. `table` may be
  /// nullptr: all defaults. `name` is "optimizer.adamw"; `chosen` is where the plugin was chosen,
  /// for options that are missing. All problems are appended.
  static PluginOptions from(const Node* table, ciuic_array specs, std::string_view name,
                            const Where& chosen, std::vector<Problem>& problems,
                            const Fallbacks& fallbacks = {});

  PluginOptions();
  ~PluginOptions();
  PluginOptions(PluginOptions&&) noexcept;
  PluginOptions& operator=(PluginOptions&&) noexcept;

  /// ciuic_option: one per spec, in the same order.
  [[nodiscard]] ciuic_array array() const;
  /// For config.resolved.toml. Secret options are left out.
  [[nodiscard]] TomlEntries toml_entries() const;
  /// Those that move a loss bit, as (name.key, text).
  [[nodiscard]] TomlEntries numeric_settings() const;
  /// What was given for options that are patterns over parameters' names.
  struct NamePatterns {
    std::string key;  // "optimizer.adamw.no_decay"
    Where where;
    std::vector<std::string> patterns;
  };
  [[nodiscard]] const std::vector<NamePatterns>& name_patterns() const { return name_patterns_; }
  /// Options that were given and are deprecated.
  [[nodiscard]] const std::vector<Problem>& warnings() const { return warnings_; }

 private:
  struct Value;

  /// Converts one option. `node` is its value or nullptr; `owner` is where a missing one would
  /// stand.
  void add(const ciuic_option_spec& spec, const Node* node, const Where& owner,
           std::vector<Problem>& problems);

  std::string name_;
  std::vector<std::unique_ptr<Value>> values_;
  std::vector<ciuic_option> options_;
  std::vector<NamePatterns> name_patterns_;
  std::vector<Problem> warnings_;
};

}  // namespace ciuic::core
