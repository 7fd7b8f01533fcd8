// SPDX-License-Identifier: MIT
#include "core/config/config_text.h"

#include <algorithm>
#include <array>

#include <xxhash.h>

#include "core/config/schema.h"

namespace ciuic::core {
namespace {

struct Form {
  bool has_origins = false;
  bool has_places = true;  // keys that say where a run happens
};

/// Writes a whole configuration, table by table.
class Writer {
 public:
  Writer(const RunConfig& config, const ResolvedParts& parts, Form form)
      : config_(config), parts_(parts), form_(form) {}

  std::string text() {
    for (const Section& section : sections()) {
      begin_table(std::string(section.name));
      for (const Key& key : keys()) {
        if (key.table == section.name && is_written(key)) {
          line(std::string(key.name), value_text(key, config_), key.path());
        }
      }
      if (section.name == "model") {
        write_model_fields();
      }
      if (section.has_plugins) {
        write_plugin_tables(section.name);
      }
    }
    return out_;
  }

 private:
  [[nodiscard]] bool is_written(const Key& key) const {
    if ((key.flags & kOptional) != 0 && !is_set(key, config_)) {
      return false;
    }
    return !is_moot(key) && (form_.has_places || (key.flags & kPlace) == 0);
  }

  /// Without effect beside another key, which would be an error.
  [[nodiscard]] bool is_moot(const Key& key) const {
    const std::string path = key.path();
    return (path == "data.validation_fraction" && !config_.data.validation.empty()) ||
           (path == "optimizer.gradient_clip_norm" && !config_.schedule.gradient_clip_norm.empty());
  }

  void write_model_fields() {
    for (const auto& [name, value] : parts_.model_fields) {
      line(toml_key(name), value, "model." + name);
    }
    if (parts_.model_fields.empty()) {
      for (const Entry& entry : config_.model.overrides) {
        line(toml_key(entry.key), entry.node.text(), "model." + entry.key);
      }
    }
  }

  void write_plugin_tables(std::string_view kind) {
    for (const auto& [of_kind, plugin] : chosen_plugins(config_)) {
      if (of_kind != kind) {
        continue;
      }
      const std::string name = of_kind + "." + plugin;
      const TomlEntries entries = plugin_entries(name);
      if (!entries.empty()) {
        begin_table(name);
      }
      for (const auto& [key, value] : entries) {
        line(toml_key(key), value, name + "." + key);
      }
    }
    write_other_tables(kind);
  }

  /// Plugins that are used without being chosen: candidates of a shadow.
  void write_other_tables(std::string_view kind) {
    const auto chosen = chosen_plugins(config_);
    for (const auto& [name, entries] : parts_.plugin_tables) {
      const auto is_this = [&name = name](const auto& c) {
        return c.first + "." + c.second == name;
      };
      if (name.starts_with(std::string(kind) + ".") && !entries.empty() &&
          std::none_of(chosen.begin(), chosen.end(), is_this)) {
        begin_table(name);
        for (const auto& [key, value] : entries) {
          line(toml_key(key), value, name + "." + key);
        }
      }
    }
  }

  [[nodiscard]] TomlEntries plugin_entries(const std::string& name) const {
    if (const auto at = parts_.plugin_tables.find(name); at != parts_.plugin_tables.end()) {
      return at->second;
    }
    TomlEntries entries;
    if (const auto at = config_.plugin_tables.find(name); at != config_.plugin_tables.end()) {
      for (const Entry& entry : *at->second.table()) {
        entries.emplace_back(entry.key, entry.node.text());
      }
    }
    return entries;
  }

  void begin_table(const std::string& name) { out_ += (out_.empty() ? "[" : "\n[") + name + "]\n"; }

  void line(const std::string& name, const std::string& value, const std::string& path) {
    out_ += name + " = " + value + (form_.has_origins ? "  # " + origin(path) : "") + "\n";
  }

  [[nodiscard]] std::string origin(const std::string& path) const {
    const Where where = where_of(path);
    if (where.file.empty()) {
      return path.starts_with("model.") ? origin_of_model() : "default";
    }
    return where.line > 0 ? where.file + ":" + std::to_string(where.line) : where.file;
  }

  /// Of the model's fields that the file does not give.
  [[nodiscard]] std::string origin_of_model() const {
    return config_.model.from.empty() ? "preset " + config_.model.preset : config_.model.from;
  }

  [[nodiscard]] Where where_of(const std::string& path) const {
    if (const auto at = config_.given.find(path); at != config_.given.end()) {
      return at->second;
    }
    const size_t dot = path.rfind('.');
    const auto table = config_.plugin_tables.find(path.substr(0, dot));
    const Node* node =
        table != config_.plugin_tables.end() ? table->second.find(path.substr(dot + 1)) : nullptr;
    return node != nullptr ? node->where : Where{};
  }

  const RunConfig& config_;
  const ResolvedParts& parts_;
  Form form_;
  std::string out_;
};

/// What a row of the reference says beside the value.
std::string about(const Key& key) {
  const std::string range = range_text(key);
  return std::string(type_name(key.type)) + (range.empty() ? "" : ", " + range) + ". " +
         std::string(key.doc);
}

std::string default_text(const Key& key) {
  const RunConfig defaults;
  return (key.flags & kOptional) != 0 ? std::string(key.example) : value_text(key, defaults);
}

std::string in_cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    out += c == '|' ? "\\|" : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string resolved_toml(const RunConfig& config, const ResolvedParts& parts) {
  return Writer(config, parts, {}).text();
}

std::string show_toml(const RunConfig& config, const ResolvedParts& parts) {
  return Writer(config, parts, {.has_origins = true}).text();
}

std::string config_hash(const RunConfig& config, const ResolvedParts& parts) {
  static constexpr char kHex[] = "0123456789abcdef";
  const std::string text = Writer(config, parts, {.has_places = false}).text();
  const uint64_t hash = XXH64(text.data(), text.size(), 0);
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4) {
    hex += kHex[(hash >> shift) & 15];
  }
  return hex;
}

TomlEntries numeric_settings(const RunConfig& config) {
  TomlEntries settings;
  for (const Key& key : keys()) {
    if ((key.flags & kMovesBits) != 0 && ((key.flags & kOptional) == 0 || is_set(key, config))) {
      settings.emplace_back(key.path(), value_text(key, config));
    }
  }
  return settings;
}

std::string reference_toml(std::span<const ModelField> model_fields) {
  std::string out = "# Every key of a ciuic run file, with its default.\n";
  for (const Section& section : sections()) {
    out += "\n# " + std::string(section.doc) + "\n[" + std::string(section.name) + "]\n";
    for (const Key& key : keys()) {
      if (key.table == section.name) {
        const bool is_comment = (key.flags & kOptional) != 0 && (key.flags & kAsked) == 0;
        out += "# " + about(key) + "\n" + (is_comment ? "# " : "") + std::string(key.name) + " = " +
               default_text(key) + "\n";
      }
    }
    if (section.name == "model") {
      for (const ModelField& field : model_fields) {
        out += "# " + std::string(field.name) + ": " + std::string(field.type) + ". " +
               std::string(field.doc) + "\n";
      }
    }
  }
  return out;
}

std::string reference_markdown(std::span<const ModelField> model_fields) {
  std::string out = "# Keys of a run file\n";
  for (const Section& section : sections()) {
    out += "\n## `[" + std::string(section.name) + "]`\n\n" + std::string(section.doc) +
           "\n\n| key | type | default | values | what |\n|---|---|---|---|---|\n";
    for (const Key& key : keys()) {
      if (key.table == section.name) {
        const bool has_default = (key.flags & kOptional) == 0;
        out += "| `" + std::string(key.name) + "` | " + std::string(type_name(key.type)) + " | " +
               (has_default ? "`" + in_cell(default_text(key)) + "`" : "") + " | " +
               in_cell(range_text(key)) + " | " + in_cell(key.doc) + " |\n";
      }
    }
    if (section.name == "model") {
      for (const ModelField& field : model_fields) {
        out += "| `" + std::string(field.name) + "` | " + std::string(field.type) +
               " | of the preset | | " + in_cell(field.doc) + " |\n";
      }
    }
  }
  return out;
}

}  // namespace ciuic::core
