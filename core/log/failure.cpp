// SPDX-License-Identifier: MIT
#include "core/log/failure.h"

#include <new>
#include <sstream>

#include "core/log/visible.h"

namespace ciuic::core {

Failure to_failure(const std::exception& exception) {
  if (const auto* failure = dynamic_cast<const Failure*>(&exception)) {
    return *failure;
  }
  const std::string what = exception.what();
  // LibTorch's allocator throws an error of its own.
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&exception) != nullptr ||
                         what.find("can't allocate memory") != std::string::npos;
  // LibTorch's errors go on with where they were thrown, one frame a line.
  std::istringstream lines(what);
  std::string first;
  std::getline(lines, first);
  Failure failure = is_memory ? Failure(ExitCode::OutOfMemory, "out of memory: " + first,
                                        "use fewer or shorter micro_sequences")
                              : Failure(ExitCode::Internal, first, "this is a bug in ciuic");
  for (std::string line; std::getline(lines, line);) {
    failure.detail(line);
  }
  return failure;
}

std::string format(const Failure& failure) {
  std::string line;
  for (const std::string& detail : failure.details()) {
    line += visible(detail) + "\n";
  }
  line += "ciuic: error: ";
  line += visible(failure.what());
  if (!failure.fields().empty()) {
    line += ":";
    for (const auto& [key, value] : failure.fields()) {
      line += " " + visible(key) + "=" + visible(value);
    }
  }
  if (!failure.remedy().empty()) {
    line += "; " + visible(failure.remedy());
  }
  return line;
}

}  // namespace ciuic::core
