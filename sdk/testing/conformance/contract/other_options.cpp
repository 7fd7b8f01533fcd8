// SPDX-License-Identifier: MIT
#include "other_options.hpp"

#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

template <typename T>
std::vector<OptionValue> bounds(T def, T min, T max) {
  std::vector<OptionValue> out;
  if (min == 0 && max == 0) {
    return {OptionValue(def + 1)};  // unbounded
  }
  for (const T value : {min, max}) {
    if (value != def) {
      out.emplace_back(value);
    }
  }
  return out;
}

template <typename T>
std::vector<OptionValue> nearby(T def, T min, T max) {
  std::vector<OptionValue> out;
  const bool is_bounded = min != 0 || max != 0;
  for (const T value : {static_cast<T>(def / 2), static_cast<T>(def + 1),
                        def > max / 2 ? def : static_cast<T>(def * 2)}) {
    if (value != def && (!is_bounded || (value >= min && value <= max))) {
      out.emplace_back(value);
    }
  }
  return out;
}

}  // namespace

std::vector<OptionValue> nearby_values(const ciuic_option_spec& spec) {
  switch (spec.type) {
    case CIUIC_TYPE_I64:
    case CIUIC_TYPE_SIZE:
    case CIUIC_TYPE_DURATION:
    case CIUIC_TYPE_COUNT:
      return nearby(spec.def.i, spec.min.i, spec.max.i);
    case CIUIC_TYPE_F64:
      return nearby(spec.def.f, spec.min.f, spec.max.f);
    default:
      return other_values(spec);
  }
}

std::vector<OptionValue> other_values(const ciuic_option_spec& spec) {
  std::vector<OptionValue> out;
  switch (spec.type) {
    case CIUIC_TYPE_BOOL:
      return {OptionValue(spec.def.i == 0)};
    case CIUIC_TYPE_I64:
    case CIUIC_TYPE_SIZE:
    case CIUIC_TYPE_DURATION:
    case CIUIC_TYPE_COUNT:
      return bounds(spec.def.i, spec.min.i, spec.max.i);
    case CIUIC_TYPE_F64:
      return bounds(spec.def.f, spec.min.f, spec.max.f);
    case CIUIC_TYPE_ENUM:
      for (const char* const* c = spec.choices; *c != nullptr; ++c) {
        if (to_view(spec.def.s) != *c) {
          out.emplace_back(std::string(*c));
        }
      }
      return out;
    default:
      return out;
  }
}

int32_t validated(const TestContext& context, Bench& bench, const OptionValues& options) {
  OptionValues all = options;
  all.insert(context.options.begin(), context.options.end());
  try {
    context.plugin.validate(bench.host(), all, bench.seat());
    return CIUIC_OK;
  } catch (const Error& e) {
    return e.code();
  }
}

bool can_live(const TestContext& context, const OptionValues& options) {
  Bench bench;
  try {
    whole_life(context, bench, Calls(bench.host()), 1, options);
    return true;
  } catch (const Error&) {
    return false;
  }
}

OptionValues other_options(const TestContext& context, Bench& bench) {
  OptionValues out;
  for (const ciuic_option_spec& spec :
       ArrayView<ciuic_option_spec>(context.plugin.descriptor().options)) {
    if (context.options.count(spec.key) == 1) {
      continue;
    }
    for (const OptionValue& value : nearby_values(spec)) {
      OptionValues with = out;
      with[spec.key] = value;
      if (validated(context, bench, with) == CIUIC_OK && can_live(context, with)) {
        out = with;
        break;
      }
    }
  }
  return out;
}

}  // namespace ciuic::testing::contract
