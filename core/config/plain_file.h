// SPDX-License-Identifier: MIT
//
// The whole of a file that a person named. A pipe in its place would be waited for without end, and
// a device may have no end: both are refused with what they are.
#pragma once

#include <cstddef>
#include <string>

namespace ciuic::core {

struct PlainFile {
  std::string bytes;
  std::string problem;  // "is a pipe", "cannot be read: No such file or directory"; empty: none
};

/// At most `most` bytes are taken: a longer file has a problem. Never waits.
PlainFile read_plain_file(const std::string& path, size_t most);

}  // namespace ciuic::core
