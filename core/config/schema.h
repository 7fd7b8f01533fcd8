// SPDX-License-Identifier: MIT
//
// The one table of every key. It parses, checks, prints the reference and writes the resolved file,
// so none of these can disagree. Defaults are the member initialisers of RunConfig, reached through
// each key's slot.
//
// A new key is a member in run_config.h and a row here.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/config/run_config.h"

namespace ciuic::core {

enum class KeyType {
  Boolean,
  Integer,
  Count,
  Float,
  String,
  Plugin,
  Choice,
  Strings,
  Plugins,
  Duration,
  Interval,
  Schedule,
  Decorators,
  Sources,
  Factors
};

using Slot =
    std::variant<bool*, int64_t*, std::optional<int64_t>*, double*, std::string*,
                 std::vector<std::string>*, std::chrono::nanoseconds*, Interval*, SchedulePhases*,
                 DecoratorList*, std::vector<DataSource>*, std::vector<NameFactor>*>;

enum KeyFlag : uint32_t {
  kMovesBits = 1,  // a change moves a loss bit: said at resume
  kPlace = 2,      // where a run happens, not what it is: not hashed
  kOptional = 4,   // has no default: left out of the resolved file while it is unset
  kAsked = 8,  // of these, what every file says: the reference shows its example as a value and not
               // as a comment
};

struct Key {
  std::string_view table;
  std::string_view name;
  KeyType type;
  Slot (*slot)(RunConfig&);
  std::string_view doc;
  uint32_t flags = 0;
  double min = 0;  // min == max: unbounded
  double max = 0;
  std::string_view choices = "";  // "a | b"
  std::string_view example = "";  // what the reference shows for a key without default

  [[nodiscard]] std::string path() const { return std::string(table) + "." + std::string(name); }
  [[nodiscard]] bool is_bounded() const { return min < max; }
};

/// A table of the file, in the order of the reference.
struct Section {
  std::string_view name;
  std::string_view doc;
  /// Holds the tables of plugins of that kind: [sharding.zero1].
  bool has_plugins = false;
};

std::span<const Section> sections();
std::span<const Key> keys();
const Section* find_section(std::string_view name);
const Key* find_key(std::string_view table, std::string_view name);
std::vector<std::string_view> key_names(std::string_view table);
std::vector<std::string_view> choices_of(const Key& key);

/// Turns `node` into the key's value; what is wrong with it is appended, and the default stays.
void assign(const Key& key, const Node& node, RunConfig& config, std::vector<Problem>& problems);
/// A problem with a value: `run.steps: got "x", expected a count such as 200 or "2B", 1 or more`.
Problem value_problem(std::string_view path, const Node& node, std::string_view expected);

/// The key's value as TOML writes it.
std::string value_text(const Key& key, const RunConfig& config);
/// Is a key without default set?
bool is_set(const Key& key, const RunConfig& config);

/// For a person: "count", "list of strings", ...; "1 or more", "0 to 1", "a | b".
std::string_view type_name(KeyType type);
std::string range_text(const Key& key);

}  // namespace ciuic::core
