// SPDX-License-Identifier: MIT
#include "tools/ciuic/plugin/option_text.h"

#include <array>
#include <chrono>
#include <limits>
#include <utility>

#include "core/config/joined.h"
#include "core/config/node.h"
#include "core/config/quantity.h"

namespace ciuic::tools {
namespace {

constexpr double kNoLimit = 1e300;

template <typename T, typename Text>
std::string list_text(const std::vector<T>& list, Text text) {
  std::string out = "[";
  for (const T& element : list) {
    out += (out.size() > 1 ? ", " : "") + text(element);
  }
  return out + "]";
}

bool is_real(uint32_t type) { return type == CIUIC_TYPE_F64 || type == CIUIC_TYPE_LIST_F64; }

bool is_whole(uint32_t type) {
  return type == CIUIC_TYPE_I64 || type == CIUIC_TYPE_SIZE || type == CIUIC_TYPE_COUNT ||
         type == CIUIC_TYPE_DURATION || type == CIUIC_TYPE_LIST_I64;
}

/// The type by which a bound is written.
uint32_t bound_text_type(uint32_t type) {
  return type == CIUIC_TYPE_LIST_I64   ? uint32_t{CIUIC_TYPE_I64}
         : type == CIUIC_TYPE_LIST_F64 ? uint32_t{CIUIC_TYPE_F64}
                                       : type;
}

}  // namespace

std::string one_line(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    c = byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  text.resize(text.find_last_not_of(' ') + 1);
  return text;
}

std::string type_text(uint32_t type) {
  switch (type) {
    case CIUIC_TYPE_BOOL:
      return "bool";
    case CIUIC_TYPE_I64:
      return "integer";
    case CIUIC_TYPE_F64:
      return "float";
    case CIUIC_TYPE_STRING:
      return "string";
    case CIUIC_TYPE_ENUM:
      return "choice";
    case CIUIC_TYPE_SIZE:
      return "size";
    case CIUIC_TYPE_DURATION:
      return "duration";
    case CIUIC_TYPE_LIST_I64:
      return "list of integers";
    case CIUIC_TYPE_LIST_STRING:
      return "list of strings";
    case CIUIC_TYPE_COUNT:
      return "count";
    case CIUIC_TYPE_LIST_F64:
      return "list of floats";
    default:
      return "type " + std::to_string(type);
  }
}

std::string value_text(uint32_t type, const core::OptionValue& v) {
  switch (type) {
    case CIUIC_TYPE_BOOL:
      return v.i != 0 ? "true" : "false";
    case CIUIC_TYPE_F64:
      return core::toml_float(v.f);
    case CIUIC_TYPE_STRING:
    case CIUIC_TYPE_ENUM:
      return core::toml_string(v.s);
    case CIUIC_TYPE_SIZE:
      return v.i < 0 ? std::to_string(v.i) : core::toml_string(core::format_size(v.i));
    case CIUIC_TYPE_DURATION:
      return core::toml_string(core::format_duration(std::chrono::nanoseconds(v.i)));
    case CIUIC_TYPE_LIST_I64:
      return list_text(v.integers, [](int64_t i) { return std::to_string(i); });
    case CIUIC_TYPE_LIST_F64:
      return list_text(v.reals, core::toml_float);
    case CIUIC_TYPE_LIST_STRING:
      return list_text(v.texts, [](const std::string& s) { return core::toml_string(s); });
    default:
      return std::to_string(v.i);
  }
}

std::string range_text(const core::OptionInfo& o) {
  if (!o.choices.empty()) {
    return one_line(core::joined(o.choices, " | "));
  }
  const uint32_t type = bound_text_type(o.type);
  const bool is_bounded = is_real(o.type)    ? o.min.f != o.max.f
                          : is_whole(o.type) ? o.min.i != o.max.i
                                             : false;
  if (!is_bounded) {
    return "";
  }
  const bool is_open =
      is_real(o.type) ? o.max.f >= kNoLimit : o.max.i == std::numeric_limits<int64_t>::max();
  return value_text(type, o.min) + (is_open ? " or more" : " to " + value_text(type, o.max));
}

std::string flags_text(const core::OptionInfo& o) {
  static constexpr std::array<std::pair<uint32_t, const char*>, 6> kNames{
      {{CIUIC_OPTION_REQUIRED, "required"},
       {CIUIC_OPTION_LIVE, "may change between steps"},
       {CIUIC_OPTION_SECRET, "secret"},
       {CIUIC_OPTION_AFFECTS_NUMERICS, "moves the loss"},
       {CIUIC_OPTION_ALL_RANKS_EQUAL, "equal on all ranks"},
       {CIUIC_OPTION_PARAMETER_NAMES, "patterns over parameters' names"}}};
  std::vector<std::string> parts;
  for (const auto& [flag, name] : kNames) {
    if ((o.flags & flag) != 0) {
      parts.emplace_back(name);
    }
  }
  return core::joined(parts, ", ");
}

std::string descriptor_flags_text(uint32_t flags) {
  static constexpr std::array<std::pair<uint32_t, const char*>, 4> kNames{
      {{CIUIC_FLAG_RELOADABLE, "RELOADABLE"},
       {CIUIC_FLAG_NEVER_UNLOAD, "NEVER_UNLOAD"},
       {CIUIC_FLAG_DETERMINISTIC, "DETERMINISTIC"},
       {CIUIC_FLAG_OWN_THREADS, "OWN_THREADS"}}};
  std::vector<std::string> parts;
  for (const auto& [flag, name] : kNames) {
    if ((flags & flag) != 0) {
      parts.emplace_back(name);
    }
  }
  return parts.empty() ? "none" : core::joined(parts, ", ");
}

}  // namespace ciuic::tools
