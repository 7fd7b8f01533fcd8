// SPDX-License-Identifier: MIT
//
// Where the built plugins are.
#pragma once

#include <string>

#include <ciuic/testing/loaded_plugin.hpp>

namespace ciuic::testing {

inline std::string plugin_path(const std::string& name) {
  return std::string(CIUIC_BUILD_DIR) + "/plugins/lib" + name + ".so";
}
inline LoadedPlugin load_plugin(const std::string& name) { return LoadedPlugin(plugin_path(name)); }

/// Runs `body`; the Error that it must throw, for looks at code, peer and text.
template <typename Body>
Error error_of(Body&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e;
  }
  return Error(CIUIC_OK, "nothing was thrown");
}

}  // namespace ciuic::testing
