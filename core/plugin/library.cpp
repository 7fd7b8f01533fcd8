// SPDX-License-Identifier: MIT
#include "core/plugin/library.h"

#define BOOST_DLL_USE_STD_FS
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <stdexcept>

#include <boost/dll/shared_library.hpp>

#include "core/plugin/descriptor_check.h"

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

/// dlsym also looks in what a library needs: is this symbol the library's own?
bool is_own(const boost::dll::shared_library& library, void* symbol) {
  Dl_info info{};
  void* found = nullptr;
  link_map* own = nullptr;
  return dlinfo(library.native(), RTLD_DI_LINKMAP, &own) == 0 &&
         dladdr1(symbol, &info, &found, RTLD_DL_LINKMAP) != 0 && found == own;
}

}  // namespace

Library Library::open(const std::string& path) {
  auto mapped = std::make_shared<boost::dll::shared_library>(map(path));
  if (!mapped->has("ciuic_plugin_query")) {
    throw std::runtime_error("query: it lacks the symbol ciuic_plugin_query");
  }
  using Query = const ciuic_descriptor*(uint32_t, uint32_t);
  Query& query = mapped->get<Query>("ciuic_plugin_query");
  if (!is_own(*mapped, reinterpret_cast<void*>(&query))) {
    throw std::runtime_error("query: ciuic_plugin_query is not its own, but of what it needs");
  }
  Library library;
  library.path_ = path;
  library.mapped_ = mapped;
  for (uint32_t i = 0; i < kMaxDescriptors; ++i) {
    const ciuic_descriptor* descriptor = query(CIUIC_ABI_MAJOR, i);
    if (descriptor == nullptr) {
      break;
    }
    if (const std::string problem = descriptor_problem(*descriptor); !problem.empty()) {
      throw std::runtime_error("descriptor: " + problem);
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
