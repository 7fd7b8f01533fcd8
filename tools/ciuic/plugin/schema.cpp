// SPDX-License-Identifier: MIT
//
// ciuic plugin schema: a plugin's options as documentation, as TOML to start from, or as a JSON
// Schema for editors. All from what the binary declares.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include "core/config/node.h"
#include "core/plugin/kind.h"
#include "tools/ciuic/plugin/actions.h"
#include "tools/ciuic/plugin/option_text.h"
#include "tools/ciuic/plugin/search_options.h"

namespace ciuic::tools {
namespace {

using nlohmann::json;
namespace po = boost::program_options;

std::string title(const core::DescriptorInfo& d) {
  return std::string(core::kind_name(d.kind)) + "." + d.name;
}

/// On one line and with a full stop, so that something can follow.
std::string sentence(const std::string& given) {
  const std::string text = one_line(given);
  return text.empty() || text.back() == '.' ? text : text + ".";
}

// ---- Markdown ----

/// Text for a cell of a table.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : one_line(text)) {
    out += c == '|' ? "\\|" : std::string(1, c);
  }
  return out;
}

void print_markdown(const core::DescriptorInfo& d) {
  std::cout << "## `[" << title(d) << "]`\n\n"
            << sentence(d.summary) << " Version " << d.version << ".\n\n";
  if (d.own_options.empty()) {
    std::cout << "No options.\n\n";
    return;
  }
  std::cout << "| key | type | default | values | what |\n|---|---|---|---|---|\n";
  for (const core::OptionInfo& o : d.own_options) {
    const bool is_required = (o.flags & CIUIC_OPTION_REQUIRED) != 0;
    std::string what = o.doc;
    if (const std::string flags = flags_text(o); !flags.empty()) {
      what += " (" + flags + ")";
    }
    if (!o.deprecated.empty()) {
      what += " Deprecated: " + o.deprecated;
    }
    std::cout << "| `" << o.key << "` | " << type_text(o.type) << " | "
              << (is_required ? "" : "`" + cell(value_text(o.type, o.def)) + "`") << " | "
              << cell(range_text(o)) << " | " << cell(what) << " |\n";
  }
  std::cout << "\n";
}

// ---- TOML ----

void print_toml(const core::DescriptorInfo& d) {
  std::cout << "# " << one_line(d.summary) << "\n[" << title(d) << "]\n";
  for (const core::OptionInfo& o : d.own_options) {
    std::cout << "# " << sentence(o.doc) << " " << type_text(o.type);
    if (const std::string range = range_text(o); !range.empty()) {
      std::cout << ", " << range;
    }
    const bool is_required = (o.flags & CIUIC_OPTION_REQUIRED) != 0;
    std::cout << (is_required ? ", required\n# " : "\n") << core::toml_key(o.key) << " = "
              << value_text(o.type, o.def) << "\n";
  }
  std::cout << "\n";
}

// ---- JSON Schema ----

/// JSON has no infinity, and a bound at infinity is none.
void set_bound(json& schema, const char* name, double bound) {
  if (std::isfinite(bound)) {
    schema[name] = bound;
  }
}

json bounds(json schema, const core::OptionInfo& o) {
  if (o.min.i != o.max.i && (o.type == CIUIC_TYPE_I64 || o.type == CIUIC_TYPE_LIST_I64)) {
    schema["minimum"] = o.min.i;
    schema["maximum"] = o.max.i;
  } else if (o.min.f != o.max.f && (o.type == CIUIC_TYPE_F64 || o.type == CIUIC_TYPE_LIST_F64)) {
    set_bound(schema, "minimum", o.min.f);
    set_bound(schema, "maximum", o.max.f);
  }
  return schema;
}

/// A number within its bounds, or a text with a unit.
json amount(const char* pattern, const core::OptionInfo& o) {
  json number = {{"type", "integer"}, {"minimum", 0}};
  if (o.min.i != o.max.i) {
    number["minimum"] = o.min.i;
    number["maximum"] = o.max.i;
  }
  return {{"anyOf", json::array({number, {{"type", "string"}, {"pattern", pattern}}})}};
}

json type_schema(const core::OptionInfo& o) {
  switch (o.type) {
    case CIUIC_TYPE_BOOL:
      return {{"type", "boolean"}};
    case CIUIC_TYPE_I64:
      return bounds({{"type", "integer"}}, o);
    case CIUIC_TYPE_F64:
      return bounds({{"type", "number"}}, o);
    case CIUIC_TYPE_ENUM:
      return {{"enum", o.choices}};
    case CIUIC_TYPE_SIZE:
      return amount("^[0-9.]+ ?([KMGT]i?)?B$", o);
    case CIUIC_TYPE_COUNT:
      return amount("^[0-9.]+[KMBT]?$", o);
    case CIUIC_TYPE_DURATION:
      return {{"type", "string"}, {"pattern", "^([0-9.]+ ?(ns|us|ms|s|m|h|d))+$"}};
    case CIUIC_TYPE_LIST_I64:
      return {{"type", "array"}, {"items", bounds({{"type", "integer"}}, o)}};
    case CIUIC_TYPE_LIST_F64:
      return {{"type", "array"}, {"items", bounds({{"type", "number"}}, o)}};
    case CIUIC_TYPE_LIST_STRING:
      return {{"type", "array"}, {"items", {{"type", "string"}}}};
    default:
      return {{"type", "string"}};
  }
}

/// The default as TOML writes it: sizes and durations with their unit. Nothing: JSON has no such
/// number.
std::optional<json> default_json(const core::OptionInfo& o) {
  const auto is_finite = [](double f) { return std::isfinite(f); };
  if (!is_finite(o.type == CIUIC_TYPE_F64 ? o.def.f : 0) ||
      !std::all_of(o.def.reals.begin(), o.def.reals.end(), is_finite)) {
    return std::nullopt;
  }
  if (o.type == CIUIC_TYPE_BOOL) {
    return json(o.def.i != 0);
  }
  if (o.type == CIUIC_TYPE_SIZE || o.type == CIUIC_TYPE_DURATION) {
    const std::string text = value_text(o.type, o.def);
    return text.front() == '"' ? json(text.substr(1, text.size() - 2)) : json(o.def.i);
  }
  return o.def.to_json(o.type);
}

json plugin_schema_json(const core::DescriptorInfo& d) {
  json properties = json::object();
  json required = json::array();
  for (const core::OptionInfo& o : d.own_options) {
    json schema = type_schema(o);
    schema["description"] = o.doc;
    if ((o.flags & CIUIC_OPTION_REQUIRED) != 0) {
      required.push_back(o.key);
    } else if (const auto value = default_json(o)) {
      schema["default"] = *value;
    }
    if (!o.deprecated.empty()) {
      schema["deprecated"] = true;
    }
    properties[o.key] = std::move(schema);
  }
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", title(d)},
          {"description", d.summary},
          {"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

void print_json(const std::vector<const core::DescriptorInfo*>& plugins) {
  json out = plugins.size() == 1 ? plugin_schema_json(*plugins[0]) : json::array();
  for (const core::DescriptorInfo* d : plugins) {
    if (plugins.size() > 1) {
      out.push_back(plugin_schema_json(*d));
    }
  }
  std::cout << out.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
}

}  // namespace

int plugin_schema(const Arguments& arguments) {
  CommandLine line("plugin schema",
                   "ciuic plugin schema NAME|FILE.so [--format md|toml|json-schema]",
                   "Prints a plugin's options: as documentation, as a table to start from, or for "
                   "an editor.",
                   "  ciuic plugin schema adamw\n  ciuic plugin schema gloo --format toml\n");
  add_search_options(line);
  line.options().add_options()("format",
                               po::value<std::string>()->default_value("md")->value_name("FORMAT"),
                               "md, toml or json-schema");
  line.positional("what", 1);
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  const std::string what = get(*values, "what");
  const std::string format = get(*values, "format");
  if (what.empty()) {
    throw line.usage_failure("no NAME or FILE is given");
  }
  if (format != "md" && format != "toml" && format != "json-schema") {
    throw line.usage_failure("--format: got " + format + ", expected md, toml or json-schema");
  }
  const auto files = files_named(catalog_of(*values, line), what);
  std::vector<const core::DescriptorInfo*> plugins;
  for (const auto& file : files) {
    if (file->refusal) {
      throw refusal_of(*file);
    }
    for (const auto& plugin : file->plugins) {
      if (is_file_name(what) || plugin->name == what) {
        plugins.push_back(plugin.get());
      }
    }
  }
  if (format == "json-schema") {
    print_json(plugins);
    return 0;
  }
  for (const core::DescriptorInfo* d : plugins) {
    format == "md" ? print_markdown(*d) : print_toml(*d);
  }
  return 0;
}

}  // namespace ciuic::tools
