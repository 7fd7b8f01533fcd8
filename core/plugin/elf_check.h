// SPDX-License-Identifier: MIT
//
// A look at a shared library's ELF headers before the loader maps it: the loader itself dies
// (SIGBUS) on a truncated file.
#pragma once

#include <string>

namespace ciuic::core {

/// What is wrong with the file at `path`, in one line; empty when the loader may try.
std::string elf_problem(const std::string& path);

}  // namespace ciuic::core
