// SPDX-License-Identifier: MIT
#include "core/launch/own_program.h"

#include "core/log/failure.h"

namespace ciuic::core {

std::filesystem::path own_program() {
  std::error_code ec;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ec);
  if (ec) {
    throw Failure(ExitCode::Environment,
                  "cannot find this program's own file: /proc/self/exe: " + ec.message(),
                  "mount /proc (mount -t proc proc /proc)");
  }
  return program;
}

}  // namespace ciuic::core
