// SPDX-License-Identifier: MIT
#include "core/log/failure.h"

#include <new>

namespace ciuic::core {

Failure to_failure(const std::exception& exception) {
  if (const auto* failure = dynamic_cast<const Failure*>(&exception)) {
    return *failure;
  }
  const std::string what = exception.what();
  // LibTorch's allocator throws an error of its own.
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&exception) != nullptr ||
                         what.find("can't allocate memory") != std::string::npos;
  return is_memory ? Failure(ExitCode::OutOfMemory, "out of memory: " + what,
                             "use fewer or shorter micro_sequences")
                   : Failure(ExitCode::Internal, what, "this is a bug in ciuic");
}

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
