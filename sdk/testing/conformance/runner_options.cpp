// SPDX-License-Identifier: MIT
#include "runner_options.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <variant>

#include "runner_arguments.hpp"

namespace ciuic::testing {
namespace {

struct Unit {
  const char* name;
  double factor;
};
constexpr Unit kPlain[] = {{"", 1}};
constexpr Unit kSizes[] = {{"", 1},         {"B", 1},        {"KiB", 0x1p10},
                           {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
                           {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9}};
constexpr Unit kDurations[] = {{"ns", 1},  {"us", 1e3}, {"ms", 1e6},
                               {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
constexpr Unit kCounts[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}};

[[noreturn]] void refuse(const ciuic_option_spec& spec, const std::string& text,
                         const std::string& expected) {
  throw UsageError(std::string("--set ") + spec.key + ": got \"" + text + "\", expected " +
                   expected);
}

template <size_t N>
int64_t number_with_unit(const ciuic_option_spec& spec, const std::string& text,
                         const Unit (&units)[N], const char* expected) {
  char* end = nullptr;
  const std::string number = text.substr(0, text.find_first_not_of("+-0123456789."));
  const int64_t whole = std::strtoll(number.c_str(), &end, 10);
  const bool is_whole = !number.empty() && *end == '\0';
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0') {
    refuse(spec, text, expected);
  }
  const std::string unit = text.substr(number.size());
  for (const Unit& u : units) {
    if (unit == u.name) {
      const double scaled = value * u.factor;
      if (std::fabs(scaled) >= 0x1p63 || (!is_whole && scaled != std::floor(scaled))) {
        refuse(spec, text, expected);
      }
      return is_whole && u.factor == 1 ? whole : static_cast<int64_t>(scaled);
    }
  }
  refuse(spec, text, expected);
}

double real(const ciuic_option_spec& spec, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') {
    refuse(spec, text, "a number");
  }
  return value;
}

bool boolean(const ciuic_option_spec& spec, const std::string& text) {
  if (text != "true" && text != "false") {
    refuse(spec, text, "true or false");
  }
  return text == "true";
}

std::string choice(const ciuic_option_spec& spec, const std::string& text) {
  std::string all;
  for (const char* const* c = spec.choices; c != nullptr && *c != nullptr; ++c) {
    if (text == *c) {
      return text;
    }
    all += (all.empty() ? "" : ", ") + std::string(*c);
  }
  refuse(spec, text, "one of " + all);
}

std::vector<std::string> items(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

template <typename T, typename One>
std::vector<T> list_of(const std::string& text, One one) {
  std::vector<T> out;
  for (const std::string& item : items(text)) {
    out.push_back(one(item));
  }
  return out;
}

OptionValue typed(const ciuic_option_spec& spec, const std::string& text) {
  const auto whole = [&](const std::string& t) {
    return number_with_unit(spec, t, kPlain, "a whole number");
  };
  switch (spec.type) {
    case CIUIC_TYPE_BOOL:
      return boolean(spec, text);
    case CIUIC_TYPE_I64:
      return whole(text);
    case CIUIC_TYPE_SIZE:
      return number_with_unit(spec, text, kSizes, "a size such as 64MiB");
    case CIUIC_TYPE_DURATION:
      return number_with_unit(spec, text, kDurations, "a duration such as 30s or 250ms");
    case CIUIC_TYPE_COUNT:
      return number_with_unit(spec, text, kCounts, "a count such as 2000 or 2B");
    case CIUIC_TYPE_F64:
      return real(spec, text);
    case CIUIC_TYPE_STRING:
      return text;
    case CIUIC_TYPE_ENUM:
      return choice(spec, text);
    case CIUIC_TYPE_LIST_STRING:
      return items(text);
    case CIUIC_TYPE_LIST_I64:
      return list_of<int64_t>(text, whole);
    case CIUIC_TYPE_LIST_F64:
      return list_of<double>(text, [&](const std::string& t) { return real(spec, t); });
    default:
      refuse(spec, text, "an option of a known type, but its type is " + std::to_string(spec.type));
  }
}

const ciuic_option_spec* find(const ciuic_descriptor& descriptor, const std::string& key) {
  for (const ciuic_option_spec& spec : ArrayView<ciuic_option_spec>(descriptor.options)) {
    if (spec.key != nullptr && key == spec.key) {
      return &spec;
    }
  }
  return nullptr;
}

/// As the host checks it, before validate.
void require_in_range(const ciuic_option_spec& spec, const std::string& text,
                      const OptionValue& value) {
  const auto* whole = std::get_if<int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  const bool is_below = (whole != nullptr && spec.min.i != spec.max.i && *whole < spec.min.i) ||
                        (real != nullptr && spec.min.f != spec.max.f && *real < spec.min.f);
  const bool is_above = (whole != nullptr && spec.min.i != spec.max.i && *whole > spec.max.i) ||
                        (real != nullptr && spec.min.f != spec.max.f && *real > spec.max.f);
  if (is_below || is_above) {
    const std::string bound = whole != nullptr ? std::to_string(is_below ? spec.min.i : spec.max.i)
                                               : std::to_string(is_below ? spec.min.f : spec.max.f);
    refuse(spec, text, (is_below ? "at least " : "at most ") + bound);
  }
}

/// A text may stand in quotes, as in a config file.
std::string unquoted(const std::string& text) {
  return text.size() >= 2 && text.front() == '"' && text.back() == '"'
             ? text.substr(1, text.size() - 2)
             : text;
}

}  // namespace

OptionValues typed_options(const ciuic_descriptor& descriptor, const Settings& settings) {
  OptionValues out;
  for (const auto& [key, text] : settings) {
    if (const ciuic_option_spec* spec = find(descriptor, key)) {
      out[key] = typed(*spec, unquoted(text));
      require_in_range(*spec, text, out[key]);
    }
  }
  return out;
}

bool declares(const ciuic_descriptor& descriptor, const std::string& key) {
  return find(descriptor, key) != nullptr;
}

}  // namespace ciuic::testing
