// SPDX-License-Identifier: MIT
#include "core/plugin/library.h"

#define BOOST_DLL_USE_STD_FS
#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>

#include <boost/dll/shared_library.hpp>

#include "core/plugin/elf_check.h"

namespace ciuic::core {
namespace {

constexpr uint32_t kMaxDescriptors =
    256;  // a query that never returns NULL is a fault, not a long list

boost::dll::shared_library map(const std::string& path) {
  const auto mode = static_cast<boost::dll::load_mode::type>(RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  try {
    // An absolute path, so that the loader's own search never takes part. The throwing form: it
    // keeps the loader's words.
    return boost::dll::shared_library(std::filesystem::absolute(path), mode);
  } catch (const std::exception& e) {
    throw std::runtime_error(std::string("load: ") + e.what());
  }
}

}  // namespace

Library Library::open(const std::string& path) {
  if (const std::string problem = elf_problem(path); !problem.empty()) {
    throw std::runtime_error("open: " + problem);
  }
  boost::dll::shared_library mapped = map(path);
  if (!mapped.has("ciuic_plugin_query")) {
    throw std::runtime_error(
        "query: it lacks the symbol ciuic_plugin_query; end its source with CIUIC_PLUGINS(...)");
  }
  using Query = const ciuic_descriptor*(uint32_t, uint32_t);
  Query& query = mapped.get<Query>("ciuic_plugin_query");

  Library library;
  library.path_ = path;
  for (uint32_t i = 0; i < kMaxDescriptors; ++i) {
    const ciuic_descriptor* descriptor = query(CIUIC_ABI_MAJOR, i);
    if (descriptor == nullptr) {
      break;
    }
    library.descriptors_.push_back(descriptor);
  }
  if (library.descriptors_.empty()) {
    throw std::runtime_error("query: it offers no plugin for ABI major " +
                             std::to_string(CIUIC_ABI_MAJOR));
  }
  return library;
}

}  // namespace ciuic::core
