// SPDX-License-Identifier: MIT
#include "core/plugin/library.h"

#define BOOST_DLL_USE_STD_FS
#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <boost/dll/shared_library.hpp>

namespace ciuic::core {
namespace {

constexpr uint32_t kMaxDescriptors = 256;  // a query that never returns NULL is a fault, not a long list

/// A look at the first bytes: "file too short" or "invalid ELF header" from the loader says less.
void check_is_library(const std::string& path) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec)) {
    throw std::runtime_error("open: it is no regular file");
  }
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  if (!file.read(magic, 4) || std::string(magic, 4) != "\x7f"
                                                       "ELF") {
    throw std::runtime_error("open: it is no shared library (no ELF header)");
  }
}

boost::dll::shared_library map(const std::string& path) {
  const auto mode = static_cast<boost::dll::load_mode::type>(RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  boost::dll::fs::error_code ec;
  boost::dll::shared_library library;
  // An absolute path, so that the loader's own search never takes part.
  library.load(std::filesystem::absolute(path), mode, ec);
  if (ec) {
    throw std::runtime_error("load: " + ec.message());
  }
  return library;
}

}  // namespace

Library Library::open(const std::string& path) {
  check_is_library(path);
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
