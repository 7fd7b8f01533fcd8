// SPDX-License-Identifier: MIT
//
// ciuic plugin list | inspect.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <unistd.h>

#include <ciuic/view.hpp>

#include "core/config/node.h"
#include "core/config/quantity.h"
#include "core/plugin/catalog.h"
#include "core/plugin/descriptor_check.h"
#include "core/plugin/kind.h"
#include "core/plugin/library.h"
#include "tools/ciuic/commands.h"
#include "tools/ciuic/worker_process.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;

std::string type_name(uint32_t type) {
  switch (type) {
    case CIUIC_TYPE_BOOL:
      return "bool";
    case CIUIC_TYPE_I64:
      return "integer";
    case CIUIC_TYPE_F64:
      return "float";
    case CIUIC_TYPE_STRING:
      return "string";
    case CIUIC_TYPE_ENUM:
      return "choice";
    case CIUIC_TYPE_SIZE:
      return "size";
    case CIUIC_TYPE_DURATION:
      return "duration";
    case CIUIC_TYPE_LIST_I64:
      return "list of integers";
    case CIUIC_TYPE_LIST_STRING:
      return "list of strings";
    case CIUIC_TYPE_COUNT:
      return "count";
    case CIUIC_TYPE_LIST_F64:
      return "list of floats";
    default:
      return "type " + std::to_string(type);
  }
}

/// A value as one would write it in the file.
std::string value_text(uint32_t type, const ciuic_value& value) {
  switch (type) {
    case CIUIC_TYPE_BOOL:
      return value.i != 0 ? "true" : "false";
    case CIUIC_TYPE_F64:
      return core::toml_float(value.f);
    case CIUIC_TYPE_STRING:
    case CIUIC_TYPE_ENUM:
      return "\"" + std::string(to_view(value.s)) + "\"";
    case CIUIC_TYPE_SIZE:
      return "\"" + core::format_size(value.i) + "\"";
    case CIUIC_TYPE_DURATION:
      return "\"" + core::format_duration(std::chrono::nanoseconds(value.i)) + "\"";
    case CIUIC_TYPE_I64:
    case CIUIC_TYPE_COUNT:
      return std::to_string(value.i);
    default:
      return "[]";
  }
}

bool has_range(const ciuic_option_spec& spec) {
  return spec.type == CIUIC_TYPE_F64
             ? spec.min.f != 0 || spec.max.f != 0
             : (spec.type == CIUIC_TYPE_I64 || spec.type == CIUIC_TYPE_SIZE ||
                spec.type == CIUIC_TYPE_COUNT || spec.type == CIUIC_TYPE_DURATION) &&
                   (spec.min.i != 0 || spec.max.i != 0);
}

void print_option(const ciuic_option_spec& spec) {
  std::cout << "    " << spec.key << " = " << value_text(spec.type, spec.def) << "\n        "
            << type_name(spec.type);
  if (has_range(spec)) {
    std::cout << ", " << value_text(spec.type, spec.min) << " to "
              << value_text(spec.type, spec.max);
  }
  for (const char* const* c = spec.choices; c != nullptr && *c != nullptr; ++c) {
    std::cout << (c == spec.choices ? ", one of " : " | ") << *c;
  }
  if ((spec.flags & CIUIC_OPTION_REQUIRED) != 0) {
    std::cout << ", required";
  }
  if ((spec.flags & CIUIC_OPTION_AFFECTS_NUMERICS) != 0) {
    std::cout << ", moves the loss";
  }
  std::cout << ". " << spec.doc << "\n";
}

int list(const core::Catalog& catalog) {
  const core::Listing all = catalog.list();
  if (all.plugins.empty() && all.refused.empty()) {
    std::cout << "no plugins; looked in\n";
    for (const std::string& folder : catalog.folders()) {
      std::cout << "  " << folder << "\n";
    }
    return 0;
  }
  std::printf("%-16s %-14s %-9s %-45s %s\n", "KIND", "NAME", "VERSION", "SUMMARY", "FILE");
  for (const core::KindName& kind : core::kKinds) {
    for (const core::FoundPlugin& p : all.plugins) {
      if (p.descriptor->kind == kind.kind) {
        std::printf("%-16s %-14s %-9s %-45s %s%s\n", std::string(kind.name).c_str(),
                    p.descriptor->name, p.descriptor->version, p.descriptor->summary,
                    p.path.c_str(), p.shadowed ? " (shadowed)" : "");
      }
    }
  }
  for (const core::RefusedFile& r : all.refused) {
    std::printf("refused          %s: %s\n", r.path.c_str(), r.reason.c_str());
  }
  return 0;
}

void describe(const ciuic_descriptor& d, const std::string& path) {
  std::cout << core::kind_name(d.kind) << " " << d.name << " " << d.version << "\n  " << d.summary
            << "\n  file     " << path << "\n  abi      " << d.abi_major << "." << d.abi_minor
            << "\n  vendor   " << (d.vendor == nullptr ? "" : d.vendor) << "\n  license  "
            << d.license << "\n  build    " << (d.build == nullptr ? "" : d.build)
            << "\n  state    schema " << d.state_schema << " (reads from " << d.state_schema_min
            << ")\n";
  if (d.options.count == 0) {
    std::cout << "  options  none\n";
    return;
  }
  std::cout << "  options  in [" << core::kind_name(d.kind) << "." << d.name << "]\n";
  for (const ciuic_option_spec& spec : ArrayView<ciuic_option_spec>(d.options)) {
    print_option(spec);
  }
}

/// By file, or by name on the search path.
int inspect(const core::Catalog& catalog, const std::string& what) {
  if (what.find('/') != std::string::npos || what.ends_with(".so")) {
    try {
      const core::Library library = core::Library::open(what);
      for (const ciuic_descriptor* d : library.descriptors()) {
        if (const std::string problem = core::descriptor_problem(*d); !problem.empty()) {
          throw std::runtime_error("descriptor: " + problem);
        }
        describe(*d, what);
      }
      return 0;
    } catch (const std::runtime_error& e) {
      throw core::Failure(core::ExitCode::Plugin, e.what(), "", {{"file", what}});
    }
  }
  bool any = false;
  for (const core::FoundPlugin& p : catalog.list().plugins) {
    if (p.descriptor->name == what) {
      describe(*p.descriptor, p.path);
      any = true;
    }
  }
  if (!any) {
    throw core::Failure(core::ExitCode::Plugin, "no plugin is named \"" + what + "\"",
                        "see ciuic plugin list");
  }
  return 0;
}

}  // namespace

int plugin(const Arguments& arguments) {
  CommandLine line(
      "plugin", "ciuic plugin list [--path FOLDER]...\n       ciuic plugin inspect NAME|FILE.so",
      "list     shows every plugin on the search path, and every file that is refused, with the "
      "reason\n"
      "inspect  shows one plugin's descriptor and all its options",
      "  ciuic plugin list\n  ciuic plugin inspect adamw\n  ciuic plugin inspect ./libmine.so\n");
  line.options().add_options()(
      "path", po::value<std::vector<std::string>>()->composing()->value_name("FOLDER"),
      "Looks there first (plugins.path)");
  line.positional("action", 1);
  line.positional("what", 1);
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  quieten_libtorch();
  const std::string action = get(*values, "action");
  const core::Catalog catalog(core::Catalog::search_path(get_all(*values, "path")));
  if (action == "list") {
    return list(catalog);
  }
  if (action == "inspect" && !get(*values, "what").empty()) {
    return inspect(catalog, get(*values, "what"));
  }
  throw line.usage_failure(action == "inspect"
                               ? "no NAME or FILE is given"
                               : "got \"" + action + "\", expected list or inspect");
}

}  // namespace ciuic::tools
