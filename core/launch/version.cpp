// SPDX-License-Identifier: MIT
#include "core/launch/version.h"

#include <ciuic/abi/types.h>

namespace ciuic::core {

const std::vector<std::pair<std::string, std::string>>& versions() {
  // Versions of libraries come from CMake, so that nothing has to be included, or loaded, to name
  // them.
  static const std::vector<std::pair<std::string, std::string>> all{
      {"ciuic", CIUIC_VERSION},
      {"plugin ABI", std::to_string(CIUIC_ABI_MAJOR) + "." + std::to_string(CIUIC_ABI_MINOR)},
      {"LibTorch", CIUIC_LIBTORCH_VERSION},
      {"Boost", CIUIC_BOOST_VERSION},
      {"toml++", CIUIC_TOMLPLUSPLUS_VERSION},
      {"spdlog", CIUIC_SPDLOG_VERSION},
      {"nlohmann-json", CIUIC_NLOHMANN_JSON_VERSION},
      {"xxHash", CIUIC_XXHASH_VERSION},
      {"compiler", CIUIC_COMPILER_VERSION},
  };
  return all;
}

}  // namespace ciuic::core
