// SPDX-License-Identifier: MIT
#include "core/log/failure.h"

namespace ciuic::core {

std::string format(const Failure& failure) {
  std::string line;
  for (const std::string& detail : failure.details()) {
    line += detail + "\n";
  }
  line += "ciuic: error: ";
  line += failure.what();
  if (!failure.fields().empty()) {
    line += ":";
    for (const auto& [key, value] : failure.fields()) {
      line += " " + key + "=" + value;
    }
  }
  if (!failure.remedy().empty()) {
    line += "; " + failure.remedy();
  }
  return line;
}

}  // namespace ciuic::core
