// SPDX-License-Identifier: MIT
//
// ciuic plugin inspect: all that is known about one plugin, and why it would not load. With --static
// only what stands in the file: none of its code runs.
#include <array>
#include <iostream>

#include "core/config/joined.h"
#include "core/log/visible.h"
#include "core/plugin/kind.h"
#include "core/plugin/loading_pipeline.h"
#include "tools/ciuic/plugin/actions.h"
#include "tools/ciuic/plugin/option_text.h"
#include "tools/ciuic/plugin/search_options.h"

namespace ciuic::tools {
namespace {

void field(const char* name, const std::string& value) {
  if (!value.empty()) {
    std::string padded = name;
    padded.resize(std::max<size_t>(padded.size(), 8), ' ');
    std::cout << "  " << padded << " " << core::visible(one_line(value)) << "\n";
  }
}

void print_option(const core::OptionInfo& o) {
  std::cout << "    " << o.key << " = " << value_text(o.type, o.def) << "\n        "
            << type_text(o.type);
  if (const std::string range = range_text(o); !range.empty()) {
    std::cout << (o.choices.empty() ? ", " : ", one of ") << range;
  }
  // A duration's or size's values say their unit themselves.
  const bool has_unit = o.type == CIUIC_TYPE_DURATION || o.type == CIUIC_TYPE_SIZE;
  if (!o.unit.empty() && !has_unit) {
    std::cout << ", in " << one_line(o.unit);
  }
  if (const std::string flags = flags_text(o); !flags.empty()) {
    std::cout << ", " << flags;
  }
  if (!o.deprecated.empty()) {
    std::cout << ", deprecated (" << one_line(o.deprecated) << ")";
  }
  std::cout << ". " << one_line(o.doc) << "\n";
}

void print_options(const core::DescriptorInfo& d) {
  if (d.own_options.empty()) {
    field("options", "none");
    return;
  }
  field("options", "in [" + std::string(core::kind_name(d.kind)) + "." + d.name + "]");
  for (const core::OptionInfo& o : d.own_options) {
    print_option(o);
  }
}

void print_plugin(const core::DescriptorInfo& d) {
  std::cout << core::kind_name(d.kind) << " " << d.name << " " << d.version << "\n  "
            << one_line(d.summary) << "\n";
  field("abi", std::to_string(d.abi_major) + "." + std::to_string(d.abi_minor));
  field("vendor", d.vendor);
  field("license", d.license);
  field("build", d.build);
  field("flags", descriptor_flags_text(d.flags));
  field("features", d.features.empty() ? "none" : core::joined(d.features, ", "));
  field("state", "schema " + std::to_string(d.state_schema) + " (reads from " +
                     std::to_string(d.state_schema_min) + ")");
  print_options(d);
}

void print_record(const core::NoteRecord& r, const core::LibraryNote& note) {
  std::cout << core::kind_name(r.kind) << " " << core::visible(r.name) << " "
            << core::visible(r.version) << "\n";
  field("abi", std::to_string(note.abi.major) + "." + std::to_string(note.abi.minor));
  field("flags", descriptor_flags_text(r.flags));
  field("features", r.features.empty() ? "none" : core::joined(r.features, ", "));
  field("state", "schema " + std::to_string(r.state_schema) + " (reads from " +
                     std::to_string(r.state_schema_min) + ")");
}

void print_file(const core::LibraryFile& file, bool is_static) {
  std::cout << "file\n";
  field("path", file.path);
  field("sha256", file.sha256);
  field("bytes", file.bytes > 0 ? std::to_string(file.bytes) : "");
  if (file.note) {
    field("sdk", file.note->sdk);
  }
  if (file.elf) {
    field("build id", file.elf->build_id);
    field("needs", file.elf->needed.empty() ? "nothing" : core::joined(file.elf->needed, ", "));
    field("looks in", core::joined(file.elf->runpath, ", ") + core::joined(file.elf->rpath, ", "));
    field("exports", std::to_string(file.elf->exports.size()) + " symbols");
  }
  field("bundle", file.bundle != file.sha256 ? file.bundle : "");
  field("brings", core::joined(file.brings, ", "));
  field("staged", file.staged);
  if (!is_static && !file.plugins.empty()) {
    field("unloads",
          file.stays_resident ? "no: it stays mapped after dlclose" : "yes: it leaves at dlclose");
  }
  for (const std::string& warning : file.warnings) {
    field("warning", warning);
  }
}

/// Every step with how it went.
void print_steps(const core::LibraryFile& file) {
  std::cout << "steps\n";
  for (const std::string& step : file.steps) {
    field(step.c_str(), "ok");
  }
  if (file.refusal) {
    field(file.refusal->step.c_str(), "FAILED: " + file.refusal->reason);
  }
}

void print(const core::LibraryFile& file, bool is_static) {
  for (const auto& plugin : file.plugins) {
    print_plugin(*plugin);
  }
  if (file.plugins.empty() && file.note) {
    for (const core::NoteRecord& r : file.note->plugins) {
      print_record(r, *file.note);
    }
  }
  print_file(file, is_static);
  print_steps(file);
}

}  // namespace

int plugin_inspect(const Arguments& arguments) {
  CommandLine line(
      "plugin inspect", "ciuic plugin inspect NAME|FILE.so [--static]",
      "Shows a plugin's descriptor with all its options, its file with hashes and what "
      "it needs, and how\nevery step of loading it goes.",
      "  ciuic plugin inspect adamw\n  ciuic plugin inspect ./libmine.so\n"
      "  ciuic plugin inspect ./downloaded.so --static\n");
  add_search_options(line);
  line.options().add_options()("static", "Reads the file and runs none of its code");
  line.positional("what", 1);
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  const std::string what = get(*values, "what");
  if (what.empty()) {
    throw line.usage_failure("no NAME or FILE is given");
  }
  const bool is_static = values->count("static") != 0;
  const auto files = files_named(catalog_of(*values, line), what, is_static);
  const core::LibraryFile* refused = nullptr;
  for (const auto& file : files) {
    print(*file, is_static);
    refused = file->refusal ? file.get() : refused;
  }
  std::cout.flush();
  if (refused != nullptr) {
    throw refusal_of(*refused);
  }
  return 0;
}

}  // namespace ciuic::tools
