// SPDX-License-Identifier: MIT
//
// The query function [Q]: no allocation, thread, environment or device access.
#include <set>

#include "../process_state.hpp"
#include "../vt_slots.hpp"
#include "library_copy.hpp"
#include "load_tests.hpp"

namespace ciuic::testing {
namespace {

uint32_t count_plugins(const LoadedPlugin& plugin) {
  uint32_t count = 0;
  while (count < CIUIC_NOTE_MAX_PLUGINS && plugin.query(CIUIC_ABI_MAJOR, count) != nullptr) {
    ++count;
  }
  return count;
}

using Query = decltype(&ciuic_plugin_query);

Query query_of(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr,
          std::string("the copy cannot be mapped: ") + (library == nullptr ? dlerror() : ""));
  return reinterpret_cast<Query>(dlsym(library, "ciuic_plugin_query"));
}

}  // namespace

/// The very first call must be pure too: made in a copy of the library.
void query_is_pure(const TestContext& t) {
  const Query query = query_of(copy_library(t.path, t.scratch + "/copy"));
  const ProcessSettings settings = process_settings();
  const ProcessResources before = process_resources();
  const size_t heap_before = heap_bytes();
  const ciuic_descriptor* first = query(CIUIC_ABI_MAJOR, 0);
  const size_t heap_after = heap_bytes();
  require(heap_after == heap_before, "the first call of query took " +
                                         std::to_string(heap_after - heap_before) +
                                         " bytes from the heap; make descriptors static");
  require(first != nullptr, "query(0) is NULL in a copy of the library");
  const std::string changed = difference(settings, process_settings());
  require(changed.empty(), "query changed " + changed);
  const std::string left = left_behind(before);
  require(left.empty(), "query left behind " + left);

  for (uint32_t i = 0; i < count_plugins(t.plugin); ++i) {
    require(t.plugin.query(CIUIC_ABI_MAJOR, i) == t.plugin.query(CIUIC_ABI_MAJOR, i),
            "query(" + std::to_string(i) + ") shows another descriptor each time");
  }
}

void query_refuses_other_majors(const TestContext& t) {
  for (const uint32_t major : {99U, 0x80000000U, 0xffffffffU}) {
    require(t.plugin.query(major, 0) == nullptr,
            "query for ABI major " + std::to_string(major) +
                " shows a plugin; expected NULL: a host of that ABI would misread it");
  }
}

void query_ends(const TestContext& t) {
  const uint32_t count = count_plugins(t.plugin);
  for (const uint32_t index : {count, count + 1, 0x7fffffffU, 0xffffffffU}) {
    require(t.plugin.query(CIUIC_ABI_MAJOR, index) == nullptr,
            "query(" + std::to_string(index) + ") is not NULL, but the library has " +
                std::to_string(count) + " plugins");
  }
  std::set<std::pair<uint32_t, std::string>> names;
  for (uint32_t i = 0; i < count; ++i) {
    const ciuic_descriptor& d = *t.plugin.query(CIUIC_ABI_MAJOR, i);
    const std::string name = d.name == nullptr ? "" : d.name;
    require(names.emplace(d.kind, name).second,
            "two plugins of kind " + std::string(kind_name(d.kind)) + " are named " + name);
  }
}

}  // namespace ciuic::testing
