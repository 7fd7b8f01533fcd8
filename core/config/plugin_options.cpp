// SPDX-License-Identifier: MIT
#include "core/config/plugin_options.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include <ciuic/view.hpp>

#include "core/config/nearest.h"
#include "core/config/quantity.h"
#include "core/config/schema.h"

namespace ciuic::core {

/// What an option's ciuic_value points at, and what the spec said.
struct PluginOptions::Value {
  std::string key;
  std::string text;
  std::vector<std::string> texts;
  std::vector<ciuic_str> strs;
  std::vector<int64_t> integers;
  std::vector<double> reals;
  uint32_t flags = 0;
};

namespace {

bool is_integer_type(uint32_t type) {
  return type == CIUIC_TYPE_I64 || type == CIUIC_TYPE_SIZE || type == CIUIC_TYPE_DURATION ||
         type == CIUIC_TYPE_COUNT || type == CIUIC_TYPE_LIST_I64;
}
bool is_real_type(uint32_t type) { return type == CIUIC_TYPE_F64 || type == CIUIC_TYPE_LIST_F64; }

std::vector<std::string_view> choices_of(const ciuic_option_spec& spec) {
  std::vector<std::string_view> choices;
  for (const char* const* choice = spec.choices; choice != nullptr && *choice != nullptr;
       ++choice) {
    choices.emplace_back(*choice);
  }
  return choices;
}

std::string integer_text(uint32_t type, int64_t value) {
  switch (type) {
    case CIUIC_TYPE_SIZE:
      return value < 0 ? std::to_string(value) : format_size(value);
    case CIUIC_TYPE_DURATION:
      return format_duration(std::chrono::nanoseconds(value));
    default:
      return std::to_string(value);
  }
}

/// ", 1 to 10" or "".
std::string range_text(const ciuic_option_spec& spec) {
  constexpr double kNoLimit = 1e300;
  if (is_integer_type(spec.type) && spec.min.i != spec.max.i) {
    if (spec.max.i == std::numeric_limits<int64_t>::max()) {
      return ", " + integer_text(spec.type, spec.min.i) + " or more";
    }
    return ", " + integer_text(spec.type, spec.min.i) + " to " +
           integer_text(spec.type, spec.max.i);
  }
  if (is_real_type(spec.type) && spec.min.f != spec.max.f) {
    if (spec.max.f >= kNoLimit) {
      return ", " + toml_float(spec.min.f) + " or more";
    }
    return ", " + toml_float(spec.min.f) + " to " + toml_float(spec.max.f);
  }
  return "";
}

std::string expected(const ciuic_option_spec& spec) {
  const std::string range = range_text(spec);
  switch (spec.type) {
    case CIUIC_TYPE_BOOL:
      return "true or false";
    case CIUIC_TYPE_I64:
      return "an integer" + range;
    case CIUIC_TYPE_F64:
      return "a finite number" + range;
    case CIUIC_TYPE_STRING:
      return "a string";
    case CIUIC_TYPE_SIZE:
      return "a size such as \"64MiB\"" + range;
    case CIUIC_TYPE_DURATION:
      return "a duration such as \"30s\" or \"10m\"" + range;
    case CIUIC_TYPE_COUNT:
      return "a count such as 200 or \"2B\"" + range;
    case CIUIC_TYPE_LIST_I64:
      return "a list of integers" + range;
    case CIUIC_TYPE_LIST_F64:
      return "a list of finite numbers" + range;
    case CIUIC_TYPE_LIST_STRING:
      return "a list of strings";
    default:
      break;
  }
  std::string text = "one of";
  for (std::string_view choice : choices_of(spec)) {
    text += (text == "one of" ? " " : " | ") + std::string(choice);
  }
  return text;
}

std::optional<int64_t> integer_of(const ciuic_option_spec& spec, const Node& node) {
  std::optional<int64_t> value;
  if (const auto* text = node.string()) {
    switch (spec.type) {
      case CIUIC_TYPE_SIZE:
        value = parse_size(*text);
        break;
      case CIUIC_TYPE_COUNT:
        value = parse_count(*text);
        break;
      case CIUIC_TYPE_DURATION:
        if (const auto duration = parse_duration(*text)) {
          value = duration->count();
        }
        break;
      default:
        break;
    }
  } else if (node.integer() != nullptr && spec.type != CIUIC_TYPE_DURATION) {
    value = *node.integer();
  }
  const bool is_amount = spec.type == CIUIC_TYPE_SIZE || spec.type == CIUIC_TYPE_COUNT;
  const bool is_bounded = spec.min.i != spec.max.i;
  const bool fits = value && (is_bounded ? *value >= spec.min.i && *value <= spec.max.i
                                         : !is_amount || *value >= 0);
  return fits ? value : std::nullopt;
}

std::optional<double> real_of(const ciuic_option_spec& spec, const Node& node) {
  std::optional<double> value;
  if (const auto* whole = node.integer()) {
    value = static_cast<double>(*whole);
  } else if (const auto* real = node.real()) {
    value = *real;
  }
  const bool is_bounded = spec.min.f != spec.max.f;
  const bool fits = value && std::isfinite(*value) &&
                    (!is_bounded || (*value >= spec.min.f && *value <= spec.max.f));
  return fits ? value : std::nullopt;
}

std::optional<std::string> text_of(const Node& node) {
  if (const auto* text = node.string()) {
    return *text;
  }
  const bool is_scalar = node.list() == nullptr && node.table() == nullptr;
  return is_scalar && !node.raw.empty() ? std::optional(node.raw) : std::nullopt;
}

/// All elements by `convert`, or nothing.
template <typename T, typename Convert>
bool fill_list(const Node& node, std::vector<T>& out, Convert convert) {
  if (node.list() == nullptr) {
    return false;
  }
  for (const Node& element : *node.list()) {
    std::optional<T> value = convert(element);
    if (!value) {
      return false;
    }
    out.push_back(std::move(*value));
  }
  return true;
}

void show_texts(std::vector<std::string>& texts, std::vector<ciuic_str>& strs, ciuic_value& value) {
  for (const std::string& text : texts) {
    strs.push_back(to_str(text));
  }
  value.list = to_array(strs);
}

/// The declared default, copied: the spec may be gone by the time the plugin is made.
template <typename Value>
void take_default(const ciuic_option_spec& spec, Value& own, ciuic_value& value) {
  switch (spec.type) {
    case CIUIC_TYPE_STRING:
    case CIUIC_TYPE_ENUM:
      own.text = std::string(to_view(spec.def.s));
      value.s = to_str(own.text);
      break;
    case CIUIC_TYPE_LIST_STRING:
      for (const ciuic_str& s : ArrayView<ciuic_str>(spec.def.list)) {
        own.texts.emplace_back(to_view(s));
      }
      show_texts(own.texts, own.strs, value);
      break;
    case CIUIC_TYPE_LIST_I64:
      for (int64_t i : ArrayView<int64_t>(spec.def.list)) {
        own.integers.push_back(i);
      }
      value.list = to_array(own.integers);
      break;
    case CIUIC_TYPE_LIST_F64:
      for (double f : ArrayView<double>(spec.def.list)) {
        own.reals.push_back(f);
      }
      value.list = to_array(own.reals);
      break;
    default:
      value = spec.def;
  }
}

/// The given value. Returns whether it fits the spec.
template <typename Value>
bool take_given(const ciuic_option_spec& spec, const Node& node, Value& own, ciuic_value& value) {
  switch (spec.type) {
    case CIUIC_TYPE_BOOL:
      value.i = node.boolean() != nullptr && *node.boolean() ? 1 : 0;
      return node.boolean() != nullptr;
    case CIUIC_TYPE_I64:
    case CIUIC_TYPE_SIZE:
    case CIUIC_TYPE_COUNT:
    case CIUIC_TYPE_DURATION: {
      const auto integer = integer_of(spec, node);
      value.i = integer.value_or(0);
      return integer.has_value();
    }
    case CIUIC_TYPE_F64: {
      const auto real = real_of(spec, node);
      value.f = real.value_or(0);
      return real.has_value();
    }
    case CIUIC_TYPE_STRING:
    case CIUIC_TYPE_ENUM: {
      const auto text = text_of(node);
      own.text = text.value_or("");
      value.s = to_str(own.text);
      const auto choices = choices_of(spec);
      return text && (spec.type == CIUIC_TYPE_STRING ||
                      std::find(choices.begin(), choices.end(), own.text) != choices.end());
    }
    case CIUIC_TYPE_LIST_I64: {
      const bool fits =
          fill_list(node, own.integers, [&](const Node& n) { return integer_of(spec, n); });
      value.list = to_array(own.integers);
      return fits;
    }
    case CIUIC_TYPE_LIST_F64: {
      const bool fits = fill_list(node, own.reals, [&](const Node& n) { return real_of(spec, n); });
      value.list = to_array(own.reals);
      return fits;
    }
    default: {
      const bool fits = fill_list(node, own.texts, text_of);
      show_texts(own.texts, own.strs, value);
      return fits;
    }
  }
}

std::string value_text(const ciuic_option& option) {
  Node node;
  const auto listed = [&](auto&& convert) {
    Node::List list;
    convert(list);
    node.value = std::move(list);
  };
  switch (option.type) {
    case CIUIC_TYPE_BOOL:
      node.value = option.value.i != 0;
      break;
    case CIUIC_TYPE_F64:
      node.value = option.value.f;
      break;
    case CIUIC_TYPE_STRING:
    case CIUIC_TYPE_ENUM:
      node.value = std::string(to_view(option.value.s));
      break;
    case CIUIC_TYPE_DURATION:
      node.value = integer_text(option.type, option.value.i);
      break;
    case CIUIC_TYPE_LIST_I64:
      listed([&](Node::List& list) {
        for (int64_t i : ArrayView<int64_t>(option.value.list)) {
          list.push_back({i, {}, {}});
        }
      });
      break;
    case CIUIC_TYPE_LIST_F64:
      listed([&](Node::List& list) {
        for (double f : ArrayView<double>(option.value.list)) {
          list.push_back({f, {}, {}});
        }
      });
      break;
    case CIUIC_TYPE_LIST_STRING:
      listed([&](Node::List& list) {
        for (const ciuic_str& s : ArrayView<ciuic_str>(option.value.list)) {
          list.push_back({std::string(to_view(s)), {}, {}});
        }
      });
      break;
    default:
      node.value = option.value.i;
  }
  return node.text();
}

void check_names(const Node& table, ciuic_array specs, std::string_view name,
                 std::vector<Problem>& problems) {
  std::vector<std::string_view> keys;
  for (const ciuic_option_spec& spec : ArrayView<ciuic_option_spec>(specs)) {
    keys.emplace_back(spec.key);
  }
  for (const Entry& entry : *table.table()) {
    if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) {
      continue;
    }
    std::string hint = suggestion(entry.key, keys);
    const size_t dot = name.find('.');
    if (hint.empty() && find_key(name.substr(0, dot), entry.key) != nullptr) {
      hint = "; it belongs to [" + std::string(name.substr(0, dot)) + "]";
    }
    problems.push_back(
        problem_at(entry.node.where, std::string(name) + "." + entry.key + " is no option" + hint));
  }
}

}  // namespace

PluginOptions::PluginOptions() = default;
PluginOptions::~PluginOptions() = default;
PluginOptions::PluginOptions(PluginOptions&&) noexcept = default;
PluginOptions& PluginOptions::operator=(PluginOptions&&) noexcept = default;

PluginOptions PluginOptions::from(const Node* table, ciuic_array specs, std::string_view name,
                                  const Where& chosen, std::vector<Problem>& problems,
                                  const Fallbacks& fallbacks) {
  PluginOptions options;
  options.name_ = name;
  std::vector<Problem> found;
  if (table != nullptr && table->table() == nullptr) {
    found.push_back(value_problem(name, *table, "a table"));
    table = nullptr;
  }
  if (table != nullptr) {
    check_names(*table, specs, name, found);
  }
  const Where& owner = table != nullptr ? table->where : chosen;
  for (const ciuic_option_spec& spec : ArrayView<ciuic_option_spec>(specs)) {
    const Node* node = table != nullptr ? table->find(spec.key) : nullptr;
    if (node != nullptr && spec.deprecated != nullptr && spec.deprecated[0] != '\0') {
      options.warnings_.push_back(problem_at(
          node->where, options.name_ + "." + spec.key + " is deprecated: " + spec.deprecated));
    }
    for (const auto& [key, fallback] : fallbacks) {
      node = node == nullptr && key == spec.key ? &fallback : node;
    }
    options.add(spec, node, owner, found);
  }
  sort_by_place(found);
  problems.insert(problems.end(), std::make_move_iterator(found.begin()),
                  std::make_move_iterator(found.end()));
  return options;
}

void PluginOptions::add(const ciuic_option_spec& spec, const Node* node, const Where& owner,
                        std::vector<Problem>& problems) {
  const std::string path = name_ + "." + spec.key;
  auto own = std::make_unique<Value>();
  own->key = spec.key;
  own->flags = spec.flags;
  ciuic_option option{};
  option.struct_size = sizeof(option);
  option.type = spec.type;
  option.key = to_str(own->key);
  if (spec.type < CIUIC_TYPE_BOOL || spec.type > CIUIC_TYPE_LIST_F64) {
    problems.push_back(problem_at(
        owner, path + ": the plugin declares it with a type that this host does not know"));
  } else if (node == nullptr) {
    if ((spec.flags & CIUIC_OPTION_REQUIRED) != 0) {
      problems.push_back(problem_at(owner, path + " is missing, expected " + expected(spec)));
    }
    take_default(spec, *own, option.value);
  } else {
    option.toml_line = static_cast<uint32_t>(std::max(0, node->where.line));
    if (!take_given(spec, *node, *own, option.value)) {
      const auto* text = node->string();
      const bool is_choice = text != nullptr && spec.type == CIUIC_TYPE_ENUM;
      problems.push_back(value_problem(
          path, *node, expected(spec) + (is_choice ? suggestion(*text, choices_of(spec)) : "")));
    }
  }
  if (node != nullptr && (spec.flags & CIUIC_OPTION_PARAMETER_NAMES) != 0) {
    const bool is_list = spec.type == CIUIC_TYPE_LIST_STRING;
    name_patterns_.push_back(
        {path, node->where, is_list ? own->texts : std::vector<std::string>{own->text}});
  }
  options_.push_back(option);
  values_.push_back(std::move(own));
}

ciuic_array PluginOptions::array() const { return to_array(options_); }

TomlEntries PluginOptions::toml_entries() const {
  TomlEntries entries;
  for (size_t i = 0; i < options_.size(); ++i) {
    if ((values_[i]->flags & CIUIC_OPTION_SECRET) == 0) {
      entries.emplace_back(values_[i]->key, value_text(options_[i]));
    }
  }
  return entries;
}

TomlEntries PluginOptions::numeric_settings() const {
  TomlEntries entries;
  for (size_t i = 0; i < options_.size(); ++i) {
    if ((values_[i]->flags & CIUIC_OPTION_AFFECTS_NUMERICS) != 0) {
      entries.emplace_back(name_ + "." + values_[i]->key, value_text(options_[i]));
    }
  }
  return entries;
}

}  // namespace ciuic::core
