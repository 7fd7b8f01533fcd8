// SPDX-License-Identifier: MIT
//
// Options: declared once as a table in the plugin, checked by the host, read by name.
//
//   inline static const auto options = ciuic::option_table(
//       ciuic::option_i64("rounds", 4, 1, 100, "How often it goes round"),
//       ciuic::option_duration("timeout", 30'000'000'000, 1'000'000, 86'400'000'000'000, "Deadline"));
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/plugin.h>
#include <ciuic/error.hpp>
#include <ciuic/view.hpp>

namespace ciuic {

inline ciuic_option_spec option_of(uint32_t type, const char* key, const char* doc,
                                   uint32_t flags) {
  ciuic_option_spec spec{};
  spec.struct_size = sizeof(spec);
  spec.flags = flags;
  spec.type = type;
  spec.key = key;
  spec.doc = doc;
  spec.unit = "";
  return spec;
}

inline ciuic_option_spec with_unit(ciuic_option_spec spec, const char* unit) {
  spec.unit = unit;
  return spec;
}

inline ciuic_option_spec option_bool(const char* key, bool def, const char* doc,
                                     uint32_t flags = 0) {
  ciuic_option_spec spec = option_of(CIUIC_TYPE_BOOL, key, doc, flags);
  spec.def.i = def ? 1 : 0;
  return spec;
}
inline ciuic_option_spec option_integer(uint32_t type, const char* key, int64_t def, int64_t min,
                                        int64_t max, const char* doc, uint32_t flags) {
  ciuic_option_spec spec = option_of(type, key, doc, flags);
  spec.def.i = def;
  spec.min.i = min;
  spec.max.i = max;
  return spec;
}
inline ciuic_option_spec option_i64(const char* key, int64_t def, int64_t min, int64_t max,
                                    const char* doc, uint32_t flags = 0) {
  return option_integer(CIUIC_TYPE_I64, key, def, min, max, doc, flags);
}
/// A number with an optional decimal suffix: 2000, "2K", "2B".
inline ciuic_option_spec option_count(const char* key, int64_t def, int64_t min, int64_t max,
                                      const char* doc, uint32_t flags = 0) {
  return option_integer(CIUIC_TYPE_COUNT, key, def, min, max, doc, flags);
}
/// Bytes: 4096, "64MiB".
inline ciuic_option_spec option_size(const char* key, int64_t def, int64_t min, int64_t max,
                                     const char* doc, uint32_t flags = 0) {
  return with_unit(option_integer(CIUIC_TYPE_SIZE, key, def, min, max, doc, flags), "bytes");
}
/// Nanoseconds, written "30s", "10m", "250ms".
inline ciuic_option_spec option_duration(const char* key, int64_t def_ns, int64_t min_ns,
                                         int64_t max_ns, const char* doc, uint32_t flags = 0) {
  return with_unit(option_integer(CIUIC_TYPE_DURATION, key, def_ns, min_ns, max_ns, doc, flags),
                   "duration");
}
inline ciuic_option_spec option_f64(const char* key, double def, double min, double max,
                                    const char* doc, uint32_t flags = 0) {
  ciuic_option_spec spec = option_of(CIUIC_TYPE_F64, key, doc, flags);
  spec.def.f = def;
  spec.min.f = min;
  spec.max.f = max;
  return spec;
}
inline ciuic_option_spec option_string(const char* key, const char* def, const char* doc,
                                       uint32_t flags = 0) {
  ciuic_option_spec spec = option_of(CIUIC_TYPE_STRING, key, doc, flags);
  spec.def.s = to_str(def);
  return spec;
}
/// `choices` is NULL-terminated and lives as long as the library.
inline ciuic_option_spec option_enum(const char* key, const char* def, const char* const* choices,
                                     const char* doc, uint32_t flags = 0) {
  ciuic_option_spec spec = option_of(CIUIC_TYPE_ENUM, key, doc, flags);
  spec.def.s = to_str(def);
  spec.choices = choices;
  return spec;
}
/// Lists are empty by default.
inline ciuic_option_spec option_strings(const char* key, const char* doc, uint32_t flags = 0) {
  return option_of(CIUIC_TYPE_LIST_STRING, key, doc, flags);
}
inline ciuic_option_spec option_integers(const char* key, const char* doc, uint32_t flags = 0) {
  return option_of(CIUIC_TYPE_LIST_I64, key, doc, flags);
}
inline ciuic_option_spec option_floats(const char* key, const char* doc, uint32_t flags = 0) {
  return option_of(CIUIC_TYPE_LIST_F64, key, doc, flags);
}

template <typename... Specs>
std::array<ciuic_option_spec, sizeof...(Specs)> option_table(Specs... specs) {
  return {specs...};
}

/// The values the host hands to create and validate, by name and type. A name that the plugin did
/// not declare, or declared with another type, is INTERNAL: its bug.
class Options {
 public:
  explicit Options(ciuic_array options) : options_(options) {}

  [[nodiscard]] bool boolean(std::string_view key) const {
    return find(key, {CIUIC_TYPE_BOOL}).i != 0;
  }
  /// An integer, a count, or a size in bytes.
  [[nodiscard]] int64_t i64(std::string_view key) const {
    return find(key, {CIUIC_TYPE_I64, CIUIC_TYPE_COUNT, CIUIC_TYPE_SIZE, CIUIC_TYPE_DURATION}).i;
  }
  [[nodiscard]] std::chrono::nanoseconds duration(std::string_view key) const {
    return std::chrono::nanoseconds(find(key, {CIUIC_TYPE_DURATION}).i);
  }
  [[nodiscard]] double f64(std::string_view key) const { return find(key, {CIUIC_TYPE_F64}).f; }
  /// A string, or the chosen word of an enum.
  [[nodiscard]] std::string string(std::string_view key) const {
    return std::string(to_view(find(key, {CIUIC_TYPE_STRING, CIUIC_TYPE_ENUM}).s));
  }
  [[nodiscard]] std::vector<std::string> strings(std::string_view key) const {
    std::vector<std::string> out;
    for (const ciuic_str& s : ArrayView<ciuic_str>(find(key, {CIUIC_TYPE_LIST_STRING}).list)) {
      out.emplace_back(to_view(s));
    }
    return out;
  }
  [[nodiscard]] std::vector<int64_t> integers(std::string_view key) const {
    const ArrayView<int64_t> list(find(key, {CIUIC_TYPE_LIST_I64}).list);
    return {list.begin(), list.end()};
  }
  [[nodiscard]] std::vector<double> floats(std::string_view key) const {
    const ArrayView<double> list(find(key, {CIUIC_TYPE_LIST_F64}).list);
    return {list.begin(), list.end()};
  }

 private:
  [[nodiscard]] const ciuic_value& find(std::string_view key,
                                        std::initializer_list<uint32_t> types) const {
    for (const ciuic_option& option : options_) {
      if (to_view(option.key) == key) {
        if (std::find(types.begin(), types.end(), option.type) == types.end()) {
          raise(Error(CIUIC_INTERNAL, "option " + std::string(key) +
                                          " is read as another type than it was declared with"));
        }
        return option.value;
      }
    }
    raise(Error(CIUIC_INTERNAL, "option " + std::string(key) + " is read but not declared"));
  }

  ArrayView<ciuic_option> options_;
};

}  // namespace ciuic
