// SPDX-License-Identifier: MIT
#include "core/plugin/library_check.h"

#include <array>
#include <string_view>

#include <ciuic/abi/types.h>

#include "core/config/joined.h"
#include "core/plugin/kind.h"

namespace ciuic::core {
namespace {

/// A second OpenMP runtime beside the host's oversubscribes the cores or aborts.
constexpr std::array<std::string_view, 2> kSecondOpenMp{"libomp.so", "libiomp5.so"};

std::string who(uint32_t kind, const std::string& name, const std::string& version) {
  return std::string(kind_name(kind)) + " " + name + " " + version;
}

std::string difference(const NoteRecord& note, const DescriptorInfo& d) {
  if (note.kind != d.kind || note.name != d.name || note.version != d.version) {
    return "the note says " + who(note.kind, note.name, note.version) + ", the descriptor " +
           who(d.kind, d.name, d.version);
  }
  if (note.flags != d.flags) {
    return "the note says flags " + std::to_string(note.flags) + ", the descriptor " +
           std::to_string(d.flags);
  }
  if (note.state_schema != d.state_schema || note.state_schema_min != d.state_schema_min) {
    return "the note says state schema " + std::to_string(note.state_schema) + " (from " +
           std::to_string(note.state_schema_min) + "), the descriptor " +
           std::to_string(d.state_schema) + " (from " + std::to_string(d.state_schema_min) + ")";
  }
  if (note.features != d.features) {
    return "the note says features \"" + joined(note.features, ",") + "\", the descriptor \"" +
           joined(d.features, ",") + "\"";
  }
  return "";
}

}  // namespace

std::optional<Refusal> library_problem(const ElfFile& file, const LibraryNote& note) {
  const AbiVersion host{CIUIC_ABI_MAJOR, CIUIC_ABI_MINOR};
  // The note does not say what the plugin needs at least; the descriptor does, and is asked later.
  if (std::string problem = abi_problem(host, note.abi, 0); !problem.empty()) {
    return Refusal{"note", std::move(problem), ""};
  }
  for (const NoteRecord& record : note.plugins) {
    if (record.kind < CIUIC_KIND_COMMUNICATOR || record.kind > CIUIC_KIND_OPTIMIZER) {
      return Refusal{"note",
                     record.name + " is of kind " + std::to_string(record.kind) +
                         ", expected 1 to 7; this host does not know it",
                     ""};
    }
  }
  if (file.has_executable_stack) {
    return Refusal{"note", "it asks for an executable stack", "link it with -z noexecstack"};
  }
  if (file.has_text_relocations) {
    return Refusal{"note", "it has text relocations", "compile it with -fPIC"};
  }
  for (const std::string& needed : file.needed) {
    for (const std::string_view other : kSecondOpenMp) {
      if (needed.starts_with(other)) {
        return Refusal{"note", "it needs " + needed + ", a second OpenMP runtime in this process",
                       "link it with libgomp.so.1, as LibTorch is"};
      }
    }
  }
  return std::nullopt;
}

std::vector<std::string> library_warnings(const ElfFile& file) {
  std::vector<std::string> warnings;
  size_t extra = 0;
  size_t unique = 0;
  for (const ElfSymbol& s : file.exports) {
    extra += s.name != "ciuic_plugin_query" ? 1 : 0;
    unique += s.is_unique ? 1 : 0;
  }
  if (extra > 0) {
    warnings.push_back("it exports " + std::to_string(extra) +
                       " symbols besides ciuic_plugin_query, which others may interpose: link it "
                       "with a version script, as ciuic_add_plugin does");
  }
  if (unique > 0) {
    warnings.push_back("it has " + std::to_string(unique) +
                       " GNU_UNIQUE symbols and will never unload: compile it with "
                       "-fno-gnu-unique");
  }
  for (const auto* list : {&file.rpath, &file.runpath}) {
    for (const std::string& folder : *list) {
      if (!folder.empty() && !folder.starts_with("$ORIGIN") && !folder.starts_with("${ORIGIN}")) {
        warnings.push_back("it looks for libraries in " + folder + " (RPATH)");
      }
    }
  }
  return warnings;
}

std::string note_problem(const LibraryNote& note,
                         const std::vector<std::shared_ptr<const DescriptorInfo>>& plugins) {
  if (note.plugins.size() != plugins.size()) {
    return "its note names " + std::to_string(note.plugins.size()) + " plugins, it shows " +
           std::to_string(plugins.size());
  }
  for (size_t i = 0; i < plugins.size(); ++i) {
    if (std::string problem = difference(note.plugins[i], *plugins[i]); !problem.empty()) {
      return problem;
    }
  }
  return "";
}

}  // namespace ciuic::core
