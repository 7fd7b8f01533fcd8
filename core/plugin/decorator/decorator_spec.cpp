// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/decorator_spec.h"

#include <algorithm>
#include <array>

#include "core/config/nearest.h"
#include "core/config/quantity.h"
#include "core/config/schema.h"
#include "core/plugin/kind.h"
#include "core/plugin/trampoline/slots.h"

namespace ciuic::core {
namespace {

using Problems = std::vector<Problem>;
using Names = std::vector<std::string_view>;

struct CodeName {
  int32_t code;
  std::string_view name;
};
constexpr std::array<CodeName, 13> kCodes{{{CIUIC_CANCELLED, "cancelled"},
                                           {CIUIC_INVALID, "invalid"},
                                           {CIUIC_DEADLINE, "deadline"},
                                           {CIUIC_NOT_FOUND, "not_found"},
                                           {CIUIC_EXISTS, "exists"},
                                           {CIUIC_PERMISSION, "permission"},
                                           {CIUIC_EXHAUSTED, "exhausted"},
                                           {CIUIC_PRECONDITION, "precondition"},
                                           {CIUIC_ABORTED, "aborted"},
                                           {CIUIC_UNIMPLEMENTED, "unimplemented"},
                                           {CIUIC_INTERNAL, "internal"},
                                           {CIUIC_UNAVAILABLE, "unavailable"},
                                           {CIUIC_DATA_LOSS, "data_loss"}}};

struct Function {
  std::string_view name;  // "submit"
  std::string_view full;  // "communicator.submit"
  bool has_status;
};

std::vector<Function> functions_of(uint32_t kind) {
  std::vector<Function> all;
  with_table_of(kind, [&]<typename Vt>() {
    const auto add = [&]<typename R, typename... A>(R (*Vt::*)(A...), std::string_view full) {
      all.push_back({full.substr(full.find('.') + 1), full, std::is_same_v<R, ciuic_status*>});
    };
    std::apply([&](const auto&... s) { (add(s.member, s.name), ...); }, Slots<Vt>::all);
  });
  return all;
}

/// One table of the list, key by key: what no reader took is unknown.
class Reader {
 public:
  Reader(const Node& table, std::string path, Problems& problems)
      : table_(table), path_(std::move(path)), problems_(problems) {}

  [[nodiscard]] bool has(std::string_view key) const { return table_.find(key) != nullptr; }

  /// The key's node, where it is given.
  const Node* take(std::string_view key) {
    known_.push_back(key);
    return table_.find(key);
  }
  void refuse(std::string_view key, std::string_view expected) {
    problems_.push_back(value_problem(path_ + "." + std::string(key), *table_.find(key), expected));
  }
  void problem(std::string_view key, const std::string& what) {
    const Node* node = table_.find(key);
    problems_.push_back(problem_at(node != nullptr ? node->where : table_.where,
                                   path_ + (key.empty() ? "" : "." + std::string(key)) + what));
  }

  std::optional<std::string> text(std::string_view key) {
    const Node* node = take(key);
    if (node == nullptr) {
      return std::nullopt;
    }
    if (node->string() == nullptr || node->string()->empty()) {
      refuse(key, "a string");
      return std::nullopt;
    }
    return *node->string();
  }
  std::optional<int64_t> integer(std::string_view key, int64_t least) {
    const Node* node = take(key);
    if (node == nullptr) {
      return std::nullopt;
    }
    if (node->integer() == nullptr || *node->integer() < least) {
      refuse(key, "an integer, " + std::to_string(least) + " or more");
      return std::nullopt;
    }
    return *node->integer();
  }
  bool flag(std::string_view key) {
    const Node* node = take(key);
    if (node != nullptr && node->boolean() == nullptr) {
      refuse(key, "true or false");
    }
    return node != nullptr && node->boolean() != nullptr && *node->boolean();
  }
  /// One of the names, or a problem with the nearest one.
  std::optional<std::string> choice(std::string_view key, const Names& names) {
    const auto given = text(key);
    if (!given || std::find(names.begin(), names.end(), *given) != names.end()) {
      return given;
    }
    std::string expected = "one of";
    for (const std::string_view name : names) {
      expected += (expected == "one of" ? " " : " | ") + std::string(name);
    }
    refuse(key, expected + suggestion(*given, names));
    return std::nullopt;
  }

  void finish() {
    for (const Entry& entry : *table_.table()) {
      if (std::find(known_.begin(), known_.end(), entry.key) == known_.end()) {
        problems_.push_back(problem_at(entry.node.where, path_ + "." + entry.key + " is no key" +
                                                             suggestion(entry.key, known_)));
      }
    }
  }

 private:
  const Node& table_;
  std::string path_;
  Problems& problems_;
  Names known_;
};

void read_function(Reader& in, uint32_t kind, ChaosSpec& chaos) {
  const std::vector<Function> functions = functions_of(kind);
  Names names;
  for (const Function& f : functions) {
    names.push_back(f.name);
  }
  const auto name = in.choice("function", names);
  for (const Function& f : functions) {
    if (!name || f.name != *name) {
      continue;
    }
    chaos.function = f.full;
    if (in.has("error") && !f.has_status) {
      in.problem("error", " has no effect: " + chaos.function + " returns no status");
    }
  }
}

void read_faults(Reader& in, uint32_t kind, ChaosSpec& chaos) {
  if (const Node* delay = in.take("delay")) {
    const auto value = delay->string() != nullptr ? parse_duration(*delay->string()) : std::nullopt;
    value && value->count() > 0 ? void(chaos.delay = *value)
                                : in.refuse("delay", "a duration such as \"5ms\"");
  }
  Names codes;
  for (const CodeName& c : kCodes) {
    codes.push_back(c.name);
  }
  const auto error = in.choice("error", codes);
  for (const CodeName& c : kCodes) {
    if (error && c.name == *error) {
      chaos.error = c.code;
    }
  }
  chaos.drops = in.flag("drop");
  const std::string_view droppable = kind == CIUIC_KIND_COMMUNICATOR ? "communicator.submit"
                                     : kind == CIUIC_KIND_PROFILER   ? "profiler.emit"
                                                                     : "";
  if (chaos.drops && droppable.empty()) {
    in.problem("drop", ": the calls of a " + std::string(kind_name(kind)) +
                           " cannot be dropped: their results are used; see error");
  } else if (chaos.drops && !chaos.function.empty() && chaos.function != droppable) {
    in.problem("drop",
               " has no effect on " + chaos.function + ", only on " + std::string(droppable));
  }
  chaos.kills = in.flag("kill");
  if (!in.has("delay") && !in.has("error") && !in.has("drop") && !in.has("kill")) {
    in.problem("", ": chaos without a fault: give delay, error, drop or kill");
  }
}

ChaosSpec read_chaos(Reader& in, uint32_t kind) {
  ChaosSpec chaos;
  read_function(in, kind, chaos);
  chaos.rank = in.integer("rank", 0);
  chaos.seed = in.integer("seed", 0).value_or(0);
  chaos.call = in.integer("call", 1);
  if (const Node* p = in.take("probability")) {
    const double value = p->real() != nullptr      ? *p->real()
                         : p->integer() != nullptr ? static_cast<double>(*p->integer())
                                                   : -1.0;
    value >= 0 && value <= 1 ? void(chaos.probability = value)
                             : in.refuse("probability", "a number from 0 to 1");
    if (chaos.call) {
      in.problem("probability", " has no effect: call names the one that is met");
    }
  }
  read_faults(in, kind, chaos);
  return chaos;
}

/// A name in braces that nothing replaces would be part of a file's name, unseen.
void check_placeholders(Reader& in, const std::string& path) {
  const Names names{"kind", "plugin", "rank"};
  for (size_t at = path.find('{'); at != std::string::npos; at = path.find('{', at + 1)) {
    const size_t end = path.find('}', at);
    if (end == std::string::npos) {
      return;
    }
    const std::string name = path.substr(at + 1, end - at - 1);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      in.problem("path", ": {" + name +
                             "} stands for nothing, expected {kind}, {plugin} or {rank}" +
                             suggestion(name, names));
    }
  }
}

RecordSpec read_record(Reader& in) {
  RecordSpec record;
  record.path = in.text("path").value_or("");
  check_placeholders(in, record.path);
  if (const Node* size = in.take("tensor_bytes")) {
    const auto bytes = size->string() != nullptr    ? parse_size(*size->string())
                       : size->integer() != nullptr ? std::optional(*size->integer())
                                                    : std::nullopt;
    bytes&&* bytes >= 0 ? void(record.tensor_bytes = *bytes)
                        : in.refuse("tensor_bytes", "a size such as \"64KiB\"");
  }
  return record;
}

ShadowSpec read_shadow(Reader& in, uint32_t kind) {
  ShadowSpec shadow;
  if (kind == CIUIC_KIND_SHARDING || kind == CIUIC_KIND_CHECKPOINT || kind == CIUIC_KIND_PROFILER) {
    in.problem("with", ": a " + std::string(kind_name(kind)) +
                           " has no shadow: two at once would share what they change; its "
                           "decorators are chaos and record");
  }
  const auto candidate = in.text("candidate");
  shadow.candidate = candidate.value_or("");
  if (!in.has("candidate")) {
    in.problem("", ".candidate is missing");
  }
  return shadow;
}

}  // namespace

std::vector<DecoratorSpec> read_decorators(const Node& list, uint32_t kind, std::string_view path,
                                           Problems& problems) {
  std::vector<DecoratorSpec> specs;
  if (list.list() == nullptr) {
    return specs;  // said by the schema
  }
  const Names kDecorators{"chaos", "record", "shadow"};
  for (size_t i = 0; i < list.list()->size(); ++i) {
    const Node& table = (*list.list())[i];
    const std::string name = std::string(path) + "[" + std::to_string(i) + "]";
    Reader in(table, name, problems);
    if (table.table() == nullptr) {
      problems.push_back(value_problem(name, table, "a table: { with = \"record\" }"));
      continue;
    }
    const auto with = in.choice("with", kDecorators);
    if (!in.has("with")) {
      in.problem("", ".with is missing");
    }
    if (!with) {
      continue;
    }
    DecoratorSpec spec{ShadowSpec{}, table.where};
    if (*with == "chaos") {
      spec.what = read_chaos(in, kind);
    } else if (*with == "record") {
      spec.what = read_record(in);
    } else {
      spec.what = read_shadow(in, kind);
    }
    in.finish();
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace ciuic::core
