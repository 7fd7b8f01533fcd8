// SPDX-License-Identifier: MIT
//
// Between a key's Node and its typed value, in both directions.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/config/nearest.h"
#include "core/config/schema.h"
#include "core/config/utf8.h"

namespace ciuic::core {
namespace {

using Problems = std::vector<Problem>;

struct Shape {
  SchedulePhase::Shape shape;
  std::string_view name;
};
constexpr std::array<Shape, 7> kShapes{{{SchedulePhase::Shape::Linear, "linear"},
                                        {SchedulePhase::Shape::Constant, "constant"},
                                        {SchedulePhase::Shape::Cosine, "cosine"},
                                        {SchedulePhase::Shape::Step, "step"},
                                        {SchedulePhase::Shape::Exponential, "exponential"},
                                        {SchedulePhase::Shape::Sqrt, "sqrt"},
                                        {SchedulePhase::Shape::InverseSqrt, "inverse_sqrt"}}};
constexpr std::string_view kExpectedShape =
    "one of linear | constant | cosine | step | exponential | sqrt | inverse_sqrt";

/// A duration of 0 is no duration: it turns off what the key is for.
bool may_be_never(const Key& key) { return key.type == KeyType::Duration && key.min == 0; }

std::string expected(const Key& key) {
  const std::string range = range_text(key);
  const std::string in_range = range.empty() ? "" : ", " + range;
  switch (key.type) {
    case KeyType::Boolean:
      return "true or false";
    case KeyType::Integer:
      return "an integer" + in_range;
    case KeyType::Count:
      return "a count such as 200 or \"2B\"" + in_range;
    case KeyType::Float:
      return "a finite number" + in_range;
    case KeyType::String:
      return "a string";
    case KeyType::Plugin:
      return "the name of a plugin: letters, digits, - and _";
    case KeyType::Choice:
      return "one of " + range;
    case KeyType::Strings:
      return "a list of strings, such as [\"a\", \"b\"]";
    case KeyType::Plugins:
      return "a list of names of plugins, each once";
    case KeyType::Duration:
      return "a duration such as \"30s\" or \"10m\"" +
             (may_be_never(key) ? std::string(", or \"never\"") : in_range);
    case KeyType::Interval:
      return "\"50 steps\", \"1 epoch\", \"10m\" or \"never\"";
    case KeyType::Schedule:
      return "a finite number" + in_range + ", or a list of phases";
    case KeyType::Decorators:
      return "a list of decorators, such as [{ with = \"record\" }]";
    case KeyType::Sources:
      return "a list of sources, such as [{ name = \"web\", files = [\"web/*.txt\"], weight = 0.8 "
             "}]";
    case KeyType::Factors:
      return "a table of patterns and factors, such as { \"*norm*\" = 0.5 }, each" + in_range;
  }
  return "";
}

bool in_range(const Key& key, double value) {
  return !key.is_bounded() || (value >= key.min && value <= key.max);
}

/// A string, or the text of an override that happens to look like a number.
std::optional<std::string> text_of(const Node& node) {
  if (const auto* text = node.string()) {
    return *text;
  }
  const bool is_scalar = node.list() == nullptr && node.table() == nullptr;
  return is_scalar && !node.raw.empty() ? std::optional(node.raw) : std::nullopt;
}

bool is_plain_text(std::string_view text) {
  return text.find('\0') == std::string_view::npos && is_utf8(text);
}

bool is_plugin_name(std::string_view name) {
  constexpr size_t kLongest = 64;
  return !name.empty() && name.size() <= kLongest &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-';
         });
}

std::optional<double> number_of(const Node& node) {
  if (const auto* whole = node.integer()) {
    return static_cast<double>(*whole);
  }
  const auto* real = node.real();
  return real != nullptr && std::isfinite(*real) ? std::optional(*real) : std::nullopt;
}

std::optional<int64_t> count_of(const Node& node) {
  if (const auto* whole = node.integer()) {
    return *whole;
  }
  const auto* text = node.string();
  return text != nullptr ? parse_count(*text) : std::nullopt;
}

std::optional<std::vector<std::string>> strings_of(const Node& node) {
  if (node.list() == nullptr) {
    return std::nullopt;
  }
  std::vector<std::string> strings;
  for (const Node& element : *node.list()) {
    const auto* text = element.string();
    if (text == nullptr || text->empty() || !is_plain_text(*text)) {
      return std::nullopt;
    }
    strings.push_back(*text);
  }
  return strings;
}

bool are_distinct_plugins(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return std::all_of(names.begin(), names.end(), is_plugin_name) &&
         std::adjacent_find(names.begin(), names.end()) == names.end();
}

// ---- phases ----

bool parse_until(std::string_view text, SchedulePhase& phase) {
  if (text == "end") {
    phase.until = SchedulePhase::Until::End;
    return true;
  }
  const size_t space = text.rfind(' ');
  if (space == std::string_view::npos) {
    return false;
  }
  const std::string_view unit = text.substr(space + 1);
  const auto count = parse_count(text.substr(0, space));
  const bool is_steps = unit == "steps" || unit == "step";
  if (!count || (!is_steps && unit != "tokens" && unit != "token")) {
    return false;
  }
  phase.until = is_steps ? SchedulePhase::Until::Steps : SchedulePhase::Until::Tokens;
  phase.count = *count;
  return true;
}

std::string until_text(const SchedulePhase& phase) {
  switch (phase.until) {
    case SchedulePhase::Until::End:
      return "end";
    case SchedulePhase::Until::Steps:
      return std::to_string(phase.count) + " steps";
    case SchedulePhase::Until::Tokens:
      return format_count(phase.count) + " tokens";
  }
  return "";
}

bool parse_shape(std::string_view text, SchedulePhase& phase) {
  for (const Shape& shape : kShapes) {
    if (shape.name == text) {
      phase.shape = shape.shape;
      return true;
    }
  }
  return false;
}

/// One key of a phase. Returns what was expected, or "".
std::string_view assign_phase_key(const Key& key, std::string_view name, const Node& node,
                                  SchedulePhase& phase) {
  const std::string text = node.string() != nullptr ? *node.string() : "";
  if (name == "until") {
    return parse_until(text, phase) ? "" : "\"20 steps\", \"2B tokens\" or \"end\"";
  }
  if (name == "shape") {
    return parse_shape(text, phase) ? "" : kExpectedShape;
  }
  const auto value = number_of(node);
  phase.to = value.value_or(0);
  return value && in_range(key, *value) ? "" : "a finite number, 0 or more";
}

std::optional<SchedulePhase> phase_of(const Key& key, const Node& node, const std::string& path,
                                      Problems& problems) {
  constexpr std::array<std::string_view, 3> kNames{"until", "to", "shape"};
  const size_t before = problems.size();
  if (node.table() == nullptr) {
    problems.push_back(value_problem(path, node, "a phase: { until, to, shape }"));
    return std::nullopt;
  }
  SchedulePhase phase;
  for (const Entry& entry : *node.table()) {
    if (std::find(kNames.begin(), kNames.end(), entry.key) == kNames.end()) {
      problems.push_back(problem_at(
          entry.node.where, path + "." + entry.key + " is no key" + suggestion(entry.key, kNames)));
      continue;
    }
    const std::string_view wanted = assign_phase_key(key, entry.key, entry.node, phase);
    if (!wanted.empty()) {
      problems.push_back(value_problem(path + "." + entry.key, entry.node, wanted));
    }
  }
  const bool has_target = phase.shape != SchedulePhase::Shape::InverseSqrt;
  for (std::string_view name : kNames) {
    if (node.find(name) == nullptr && (name != "to" || has_target)) {
      problems.push_back(problem_at(node.where, path + "." + std::string(name) + " is missing"));
    }
  }
  if (const Node* to = node.find("to"); to != nullptr && !has_target) {
    problems.push_back(problem_at(to->where, path +
                                                 ".to has no effect: inverse_sqrt falls from the "
                                                 "value before it as 1 / sqrt(position)"));
  }
  return problems.size() == before ? std::optional(phase) : std::nullopt;
}

/// What a phase's shape asks of the value in front of it.
void check_begin(const SchedulePhases& phases, size_t i, const std::string& name,
                 const Where& where, Problems& problems) {
  using Kind = SchedulePhase::Shape;
  const Kind shape = phases[i].shape;
  if (shape != Kind::Exponential && shape != Kind::InverseSqrt) {
    return;
  }
  const bool begins_above_zero = i > 0 && phases[i - 1].count > 0 &&
                                 (phases[i - 1].to > 0 || phases[i - 1].shape == Kind::InverseSqrt);
  if (!begins_above_zero) {
    problems.push_back(problem_at(
        where,
        name + ": " + (shape == Kind::Exponential ? "exponential" : "inverse_sqrt") +
            " begins at the value before it, which must be above 0; put a phase in front of it"));
  } else if (shape == Kind::Exponential && phases[i].to == 0) {
    problems.push_back(
        problem_at(where, name + ".to: exponential never reaches 0; give a number above it"));
  }
}

/// Phases end one after another; nothing follows "end". Steps against tokens can be told only once
/// a step's tokens are known.
void check_order(const SchedulePhases& phases, const Node& node, const std::string& path,
                 Problems& problems) {
  int64_t last_steps = -1;
  int64_t last_tokens = -1;
  for (size_t i = 0; i < phases.size(); ++i) {
    const SchedulePhase& phase = phases[i];
    const Where& where = (*node.list())[i].where;
    const std::string name = path + "[" + std::to_string(i) + "]";
    if (i > 0 && phases[i - 1].until == SchedulePhase::Until::End) {
      problems.push_back(
          problem_at(where, name + " has no effect: the phase before it lasts until the end"));
      continue;
    }
    check_begin(phases, i, name, where, problems);
    if (phase.until == SchedulePhase::Until::End) {
      continue;
    }
    int64_t& last = phase.until == SchedulePhase::Until::Steps ? last_steps : last_tokens;
    if (phase.count <= last || (phase.count == 0 && i > 0)) {
      problems.push_back(problem_at(
          where, name + ": until " + until_text(phase) + " is not after the phase before it"));
    }
    last = phase.count;
  }
}

std::optional<SchedulePhases> phases_of(const Key& key, const Node& node, Problems& problems) {
  const size_t before = problems.size();
  if (const auto value = number_of(node); value && in_range(key, *value)) {
    return SchedulePhases{{SchedulePhase::Until::End, 0, *value, SchedulePhase::Shape::Constant}};
  }
  if (node.list() == nullptr || node.list()->empty()) {
    problems.push_back(value_problem(key.path(), node, expected(key)));
    return std::nullopt;
  }
  SchedulePhases phases;
  for (size_t i = 0; i < node.list()->size(); ++i) {
    const std::string path = key.path() + "[" + std::to_string(i) + "]";
    if (const auto phase = phase_of(key, (*node.list())[i], path, problems)) {
      phases.push_back(*phase);
    }
  }
  if (problems.size() == before) {
    check_order(phases, node, key.path(), problems);
  }
  return problems.size() == before ? std::optional(phases) : std::nullopt;
}

std::string phases_text(const SchedulePhases& phases) {
  if (phases.size() == 1 && phases[0].until == SchedulePhase::Until::End &&
      phases[0].shape == SchedulePhase::Shape::Constant) {
    return toml_float(phases[0].to);
  }
  std::string text;
  for (const SchedulePhase& phase : phases) {
    const auto shape = std::find_if(kShapes.begin(), kShapes.end(),
                                    [&](const Shape& s) { return s.shape == phase.shape; });
    text +=
        (text.empty() ? "" : ", ") + std::string("{ until = ") + toml_string(until_text(phase)) +
        (phase.shape == SchedulePhase::Shape::InverseSqrt ? "" : ", to = " + toml_float(phase.to)) +
        ", shape = " + toml_string(shape->name) + " }";
  }
  return "[" + text + "]";
}

/// One key of a source; what was expected where the value does not fit, else "".
std::string_view assign_source_key(std::string_view name, const Node& node, DataSource& source) {
  if (name == "name") {
    const auto text = text_of(node);
    source.name = text.value_or("");
    return !source.name.empty() && is_plain_text(source.name) ? "" : "a name";
  }
  if (name == "files") {
    const auto strings = strings_of(node);
    source.files = strings.value_or(std::vector<std::string>());
    return !source.files.empty() ? "" : "a list of paths and globs, at least one";
  }
  constexpr double kMost = 1e9;
  const auto value = number_of(node);
  const bool is_good = value && *value > 0 && *value <= kMost;
  name == "weight" ? void(source.weight = value.value_or(1)) : void(source.repeat = value);
  return is_good ? "" : "a finite number above 0";
}

std::optional<DataSource> source_of(const Node& node, const std::string& path, Problems& problems) {
  constexpr std::array<std::string_view, 4> kNames{"name", "files", "weight", "repeat"};
  const size_t before = problems.size();
  if (node.table() == nullptr) {
    problems.push_back(value_problem(path, node, "a source: { name, files, weight }"));
    return std::nullopt;
  }
  DataSource source;
  for (const Entry& entry : *node.table()) {
    if (std::find(kNames.begin(), kNames.end(), entry.key) == kNames.end()) {
      problems.push_back(problem_at(
          entry.node.where, path + "." + entry.key + " is no key" + suggestion(entry.key, kNames)));
      continue;
    }
    const std::string_view wanted = assign_source_key(entry.key, entry.node, source);
    if (!wanted.empty()) {
      problems.push_back(value_problem(path + "." + entry.key, entry.node, wanted));
    }
  }
  for (std::string_view name : {"name", "files"}) {
    if (node.find(name) == nullptr) {
      problems.push_back(problem_at(node.where, path + "." + std::string(name) + " is missing"));
    }
  }
  return problems.size() == before ? std::optional(source) : std::nullopt;
}

std::optional<std::vector<DataSource>> sources_of(const Key& key, const Node& node,
                                                  Problems& problems) {
  constexpr size_t kMost = 64;
  if (node.list() == nullptr || node.list()->empty() || node.list()->size() > kMost) {
    problems.push_back(value_problem(key.path(), node, expected(key)));
    return std::nullopt;
  }
  const size_t before = problems.size();
  std::vector<DataSource> sources;
  for (size_t i = 0; i < node.list()->size(); ++i) {
    const Node& element = (*node.list())[i];
    const std::string path = key.path() + "[" + std::to_string(i) + "]";
    const auto source = source_of(element, path, problems);
    if (!source) {
      continue;
    }
    if (std::any_of(sources.begin(), sources.end(),
                    [&](const DataSource& other) { return other.name == source->name; })) {
      problems.push_back(problem_at(
          element.where, path + ".name: " + toml_string(source->name) + " is another's already"));
    }
    sources.push_back(*source);
  }
  return problems.size() == before ? std::optional(sources) : std::nullopt;
}

std::optional<std::vector<NameFactor>> factors_of(const Key& key, const Node& node,
                                                  Problems& problems) {
  if (node.table() == nullptr) {
    problems.push_back(value_problem(key.path(), node, expected(key)));
    return std::nullopt;
  }
  const size_t before = problems.size();
  Node::Table entries = *node.table();
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.place < b.place; });
  std::vector<NameFactor> factors;
  for (const Entry& entry : entries) {
    const auto value = number_of(entry.node);
    if (!value || !in_range(key, *value) || entry.key.empty() || !is_plain_text(entry.key)) {
      problems.push_back(value_problem(key.path() + "." + toml_key(entry.key), entry.node,
                                       "a finite number, " + range_text(key)));
      continue;
    }
    factors.push_back({entry.key, *value});
  }
  return problems.size() == before ? std::optional(factors) : std::nullopt;
}

std::string factors_text(const std::vector<NameFactor>& factors) {
  std::string text;
  for (const NameFactor& f : factors) {
    text += (text.empty() ? " " : ", ") + toml_key(f.pattern) + " = " + toml_float(f.factor);
  }
  return text.empty() ? "{}" : "{" + text + " }";
}

std::string strings_text(const std::vector<std::string>& strings) {
  std::string text;
  for (const std::string& s : strings) {
    text += (text.empty() ? "" : ", ") + toml_string(s);
  }
  return "[" + text + "]";
}

std::string sources_text(const std::vector<DataSource>& sources) {
  std::string text;
  for (const DataSource& source : sources) {
    text += (text.empty() ? "" : ", ") + std::string("{ name = ") + toml_string(source.name) +
            ", files = " + strings_text(source.files) + ", weight = " + toml_float(source.weight) +
            (source.repeat ? ", repeat = " + toml_float(*source.repeat) : "") + " }";
  }
  return "[" + text + "]";
}

// ---- node to value: one overload per type of member ----

class Assign {
 public:
  Assign(const Key& key, const Node& node, Problems& problems)
      : key_(key), node_(node), problems_(problems) {}

  void operator()(bool* out) const {
    node_.boolean() != nullptr ? void(*out = *node_.boolean()) : refuse();
  }
  void operator()(int64_t* out) const {
    const auto value = key_.type == KeyType::Count  ? count_of(node_)
                       : node_.integer() != nullptr ? std::optional(*node_.integer())
                                                    : std::nullopt;
    take(out, value);
  }
  void operator()(std::optional<int64_t>* out) const { take(out, count_of(node_)); }
  void operator()(double* out) const {
    const auto value = number_of(node_);
    value&& in_range(key_, *value) ? void(*out = *value) : refuse();
  }
  void operator()(std::string* out) const {
    const auto text = text_of(node_);
    if (!text || !is_plain_text(*text) ||
        (key_.type == KeyType::Plugin && !is_plugin_name(*text))) {
      return refuse();
    }
    const auto choices = choices_of(key_);
    if (!choices.empty() && std::find(choices.begin(), choices.end(), *text) == choices.end()) {
      return refuse(suggestion(*text, choices));
    }
    *out = *text;
  }
  void operator()(std::vector<std::string>* out) const {
    const auto strings = strings_of(node_);
    if (!strings || (key_.type == KeyType::Plugins && !are_distinct_plugins(*strings))) {
      return refuse();
    }
    *out = *strings;
  }
  void operator()(std::chrono::nanoseconds* out) const {
    auto duration = node_.string() != nullptr ? parse_duration(*node_.string()) : std::nullopt;
    if (may_be_never(key_) && node_.string() != nullptr && *node_.string() == "never") {
      duration = std::chrono::nanoseconds(0);
    }
    duration&& in_range(key_, static_cast<double>(duration->count())) ? void(*out = *duration)
                                                                      : refuse();
  }
  void operator()(Interval* out) const {
    const auto interval =
        node_.string() != nullptr ? parse_interval(*node_.string()) : std::nullopt;
    interval ? void(*out = *interval) : refuse();
  }
  void operator()(DecoratorList* out) const {
    node_.list() != nullptr ? void(out->list = node_) : refuse();
  }
  void operator()(std::vector<DataSource>* out) const {
    if (const auto sources = sources_of(key_, node_, problems_)) {
      *out = *sources;
    }
  }
  void operator()(std::vector<NameFactor>* out) const {
    if (const auto factors = factors_of(key_, node_, problems_)) {
      *out = *factors;
    }
  }
  void operator()(SchedulePhases* out) const {
    if (const auto phases = phases_of(key_, node_, problems_)) {
      *out = *phases;
    }
  }

 private:
  template <typename Out>
  void take(Out* out, std::optional<int64_t> value) const {
    if (value && in_range(key_, static_cast<double>(*value))) {
      *out = *value;
      return;
    }
    // The range leaves out limits that nobody meets but by a typing error.
    const double got = value ? static_cast<double>(*value) : number_of(node_).value_or(0);
    refuse(key_.is_bounded() && key_.max >= 1e9 && got > key_.max
               ? ", and at most " + std::to_string(static_cast<int64_t>(key_.max))
               : "");
  }
  void refuse(const std::string& hint = "") const {
    problems_.push_back(value_problem(key_.path(), node_, expected(key_) + hint));
  }

  const Key& key_;
  const Node& node_;
  Problems& problems_;
};

// ---- value to text ----

class Text {
 public:
  explicit Text(const Key& key) : key_(key) {}

  std::string operator()(const bool* v) const { return *v ? "true" : "false"; }
  std::string operator()(const int64_t* v) const { return std::to_string(*v); }
  std::string operator()(const std::optional<int64_t>* v) const {
    return *v ? std::to_string(**v) : key_example();
  }
  std::string operator()(const double* v) const { return toml_float(*v); }
  std::string operator()(const std::string* v) const { return toml_string(*v); }
  std::string operator()(const std::vector<std::string>* v) const { return strings_text(*v); }
  std::string operator()(const std::vector<DataSource>* v) const { return sources_text(*v); }
  std::string operator()(const std::vector<NameFactor>* v) const { return factors_text(*v); }
  std::string operator()(const std::chrono::nanoseconds* v) const {
    return toml_string(format_duration(*v));
  }
  std::string operator()(const Interval* v) const { return toml_string(format_interval(*v)); }
  std::string operator()(const SchedulePhases* v) const { return phases_text(*v); }
  std::string operator()(const DecoratorList* v) const {
    return v->is_empty() ? "[]" : v->list.text();
  }

 private:
  [[nodiscard]] std::string key_example() const { return std::string(key_.example); }

  const Key& key_;
};

/// At most so many bytes, cut between characters.
std::string shortened(std::string text) {
  constexpr size_t kLongest = 60;
  if (text.size() <= kLongest) {
    return text;
  }
  size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return text.substr(0, end) + "...";
}

}  // namespace

Problem value_problem(std::string_view path, const Node& node, std::string_view wanted) {
  return problem_at(node.where, std::string(path) + ": got " + shortened(node.text()) +
                                    ", expected " + std::string(wanted));
}

void assign(const Key& key, const Node& node, RunConfig& config, std::vector<Problem>& problems) {
  std::visit(Assign(key, node, problems), key.slot(config));
}

std::string value_text(const Key& key, const RunConfig& config) {
  return std::visit(Text(key), key.slot(const_cast<RunConfig&>(config)));
}

}  // namespace ciuic::core
