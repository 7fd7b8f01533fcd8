// SPDX-License-Identifier: MIT
//
// ciuic plugin list: every plugin on the search path, and every file that is refused.
#include <cstdio>
#include <iostream>

#include "core/log/visible.h"
#include "core/plugin/kind.h"
#include "core/plugin/loading_pipeline.h"
#include "tools/ciuic/plugin/actions.h"
#include "tools/ciuic/plugin/option_text.h"
#include "tools/ciuic/plugin/search_options.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;

void print_nothing(const core::Catalog& catalog) {
  std::cout << "no plugins; looked in\n";
  for (const std::string& folder : catalog.folders()) {
    std::cout << "  " << folder << "\n";
  }
}

void print(const core::Listing& all) {
  std::printf("%-16s %-14s %-9s %-45s %s\n", "KIND", "NAME", "VERSION", "SUMMARY", "FILE");
  for (const core::KindName& kind : core::kKinds) {
    for (const core::FoundPlugin& p : all.plugins) {
      if (p.descriptor->kind == kind.kind) {
        std::printf("%-16s %-14s %-9s %-45s %s%s\n", std::string(kind.name).c_str(),
                    p.descriptor->name.c_str(), p.descriptor->version.c_str(),
                    one_line(p.descriptor->summary).c_str(), core::visible(p.path).c_str(),
                    p.shadowed ? " (shadowed)" : "");
      }
    }
  }
  for (const core::RefusedFile& r : all.refused) {
    std::printf("refused          %s: %s%s\n", core::visible(r.path).c_str(),
                core::visible(r.reason).c_str(),
                r.remedy.empty() ? "" : ("; " + core::visible(r.remedy)).c_str());
  }
}

void print(const core::LoadingTimes& times, size_t files) {
  constexpr double kMs = 1e3;
  std::printf(
      "timing: %zu files, %zu in the probe: examine %.2f ms, stage %.2f ms, cache %.2f ms, "
      "probe %.2f ms\n",
      files, times.probed, times.examine * kMs, times.stage * kMs, times.cache * kMs,
      times.probe * kMs);
}

}  // namespace

int plugin_list(const Arguments& arguments) {
  CommandLine line("plugin list", "ciuic plugin list [--path FOLDER]...",
                   "Shows every plugin on the search path, and every file there that is refused, "
                   "with the step and the reason.",
                   "  ciuic plugin list\n  ciuic plugin list --path /opt/site/plugins --lock "
                   "ciuic.lock\n");
  add_search_options(line);
  line.options().add_options()("timing", "Says where the time goes");
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  const core::Catalog catalog = catalog_of(*values, line);
  const core::Listing all = catalog.list();
  if (all.plugins.empty() && all.refused.empty()) {
    print_nothing(catalog);
  } else {
    print(all);
  }
  if (values->count("timing") != 0) {
    print(catalog.pipeline().times(), catalog.files().size());
  }
  return 0;
}

}  // namespace ciuic::tools
