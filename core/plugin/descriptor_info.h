// SPDX-License-Identifier: MIT
//
// What a plugin's descriptor says, as values of our own: the plugin need not be mapped. Made from a
// live descriptor (in the probe, and in a rank to compare), or from what the probe printed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <ciuic/abi/plugin.h>

#include "core/plugin/option_value.h"

namespace ciuic::core {

struct OptionInfo {
  std::string key, doc, unit, deprecated;
  uint32_t type = 0;
  uint32_t flags = 0;
  uint32_t since_minor = 0;
  OptionValue def, min, max;
  std::vector<std::string> choices;
};

/// Optional functions that a descriptor has.
enum DescriptorFunction : uint32_t {
  kHasValidate = 1,
  kHasQuiesce = 2,
  kHasResume = 4,
  kHasSetOption = 8,
  kHasState = 16,
};

struct DescriptorInfo {
  uint32_t kind = 0;
  uint32_t flags = 0;
  uint32_t abi_major = 0;
  uint32_t abi_minor = 0;
  uint32_t min_host_minor = 0;
  uint32_t state_schema = 0;
  uint32_t state_schema_min = 0;
  uint32_t functions = 0;  // DescriptorFunction
  std::string name, version, vendor, license, summary, build;
  std::vector<std::string> features;
  std::vector<OptionInfo> own_options;
  ciuic_array options{};  // ciuic_option_spec over own_options, as the descriptor would show them

  DescriptorInfo() = default;
  DescriptorInfo(const DescriptorInfo&) = delete;
  DescriptorInfo& operator=(const DescriptorInfo&) = delete;

  /// Copies a live descriptor that passed descriptor_problem().
  static std::shared_ptr<const DescriptorInfo> of(const ciuic_descriptor& descriptor);
  /// Throws std::exception when the text is no descriptor: it comes from a process that ran plugin
  /// code.
  static std::shared_ptr<const DescriptorInfo> from_json(const nlohmann::json& json);

  [[nodiscard]] nlohmann::json to_json() const;

 private:
  void show_options();

  std::vector<ciuic_option_spec> specs_;
  // What the specs' pointers need besides own_options.
  std::vector<std::vector<const char*>> choices_;
  std::vector<std::vector<ciuic_str>> strs_;
};

/// Two descriptions of the same descriptor?
bool is_same(const DescriptorInfo& a, const DescriptorInfo& b);

}  // namespace ciuic::core
