// SPDX-License-Identifier: MIT
//
// The option table: config files, `schema` and the docs are made from it.
#include <cmath>
#include <set>

#include "../well_formed.hpp"
#include "static_tests.hpp"

namespace ciuic::testing {
namespace {

constexpr uint32_t kKnownFlags = CIUIC_OPTION_REQUIRED | CIUIC_OPTION_LIVE | CIUIC_OPTION_SECRET |
                                 CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL |
                                 CIUIC_OPTION_PARAMETER_NAMES;

ArrayView<ciuic_option_spec> specs_of(const TestContext& t) {
  const ciuic_array options = t.plugin.descriptor().options;
  require(options.count == 0 || options.base != nullptr, "the option table is NULL");
  require(options.count == 0 || options.stride >= sizeof(ciuic_option_spec),
          "the option table's stride is " + std::to_string(options.stride) + ", expected " +
              std::to_string(sizeof(ciuic_option_spec)));
  return options;
}

bool is_integer(uint32_t type) {
  return type == CIUIC_TYPE_I64 || type == CIUIC_TYPE_SIZE || type == CIUIC_TYPE_DURATION ||
         type == CIUIC_TYPE_COUNT;
}

template <typename T>
void require_in_range(const std::string& option, T def, T min, T max) {
  if (min == 0 && max == 0) {
    return;  // unbounded
  }
  require(min <= max,
          option + ": min " + std::to_string(min) + " is above max " + std::to_string(max));
  require(def >= min && def <= max, option + ": the default " + std::to_string(def) +
                                        " is not in [" + std::to_string(min) + ", " +
                                        std::to_string(max) + "]");
}

void require_choice(const std::string& option, const ciuic_option_spec& spec) {
  require(spec.choices != nullptr && *spec.choices != nullptr,
          option + ": an ENUM without choices");
  std::string all;
  std::set<std::string> seen;
  for (const char* const* c = spec.choices; *c != nullptr; ++c) {
    require(seen.insert(*c).second, option + ": the choice " + *c + " stands there twice");
    all += (all.empty() ? "" : ", ") + std::string(*c);
  }
  const std::string def(to_view(spec.def.s));
  require((spec.flags & CIUIC_OPTION_REQUIRED) != 0 || seen.count(def) == 1,
          option + ": the default \"" + def + "\" is not among its choices " + all);
}

void require_list(const std::string& option, const ciuic_option_spec& spec, size_t item) {
  const ciuic_array list = spec.def.list;
  require(list.count == 0 || (list.base != nullptr && list.stride >= item),
          option + ": the default list is NULL, or its stride " + std::to_string(list.stride) +
              " is below " + std::to_string(item));
}

void require_default(const ciuic_option_spec& spec) {
  const std::string option = std::string("option ") + spec.key;
  const bool required = (spec.flags & CIUIC_OPTION_REQUIRED) != 0;
  if (is_integer(spec.type)) {
    require_in_range(option, required ? spec.min.i : spec.def.i, spec.min.i, spec.max.i);
  } else if (spec.type == CIUIC_TYPE_F64) {
    require(std::isfinite(spec.def.f) && !std::isnan(spec.min.f) && !std::isnan(spec.max.f),
            option + ": the default is not finite, or a bound is NaN");
    require_in_range(option, required ? spec.min.f : spec.def.f, spec.min.f, spec.max.f);
  } else if (spec.type == CIUIC_TYPE_BOOL) {
    require(spec.def.i == 0 || spec.def.i == 1, option + ": a BOOL's default is 0 or 1");
  } else if (spec.type == CIUIC_TYPE_ENUM) {
    require_choice(option, spec);
  } else if (spec.type == CIUIC_TYPE_STRING) {
    require(is_utf8(to_view(spec.def.s)), option + ": the default is no valid UTF-8");
  } else if (spec.type == CIUIC_TYPE_LIST_STRING) {
    require_list(option, spec, sizeof(ciuic_str));
  } else {
    require_list(option, spec, sizeof(int64_t));
  }
}

}  // namespace

void options_are_named_and_explained(const TestContext& t) {
  std::set<std::string> keys;
  for (const ciuic_option_spec& spec : specs_of(t)) {
    require(spec.struct_size >= sizeof(spec), "an option's struct_size is " +
                                                  std::to_string(spec.struct_size) + ", expected " +
                                                  std::to_string(sizeof(spec)));
    require(spec.key != nullptr, "an option's key is NULL");
    const std::string option = std::string("option \"") + spec.key + "\"";
    require(is_snake_case(spec.key), option + ": expected a key of a-z, 0-9 and _");
    require(keys.insert(spec.key).second, option + " stands there twice");
    require(spec.doc != nullptr && *spec.doc != '\0' && is_utf8(spec.doc),
            option + " has no doc: a person who sees it in a config file needs a line about it");
    require(spec.type >= CIUIC_TYPE_BOOL && spec.type <= CIUIC_TYPE_LIST_F64,
            option + ": type " + std::to_string(spec.type) + " is unknown");
    require((spec.flags & ~kKnownFlags) == 0, option + ": unknown bits in its flags");
    require(spec.unit == nullptr || is_utf8(spec.unit), option + ": its unit is no valid UTF-8");
  }
}

void option_defaults_fit(const TestContext& t) {
  for (const ciuic_option_spec& spec : specs_of(t)) {
    if (spec.key != nullptr && spec.type >= CIUIC_TYPE_BOOL && spec.type <= CIUIC_TYPE_LIST_F64) {
      require_default(spec);
    }
  }
}

}  // namespace ciuic::testing
