// SPDX-License-Identifier: MIT
//
// Opens a plugin's file if nobody but trusted users could have put it there or could replace it.
// What is refused, and why, stands in docs/decisions/0008-plugin-trust.md.
//
// A plugin is code that runs with all our rights, so whoever can write it can be us. Trusted are
// root, ourselves, and the owner of this executable, who could as well have changed ciuic itself.
// For the same reason, folders above both the executable and the plugin are not judged.
#pragma once

#include <cstddef>
#include <string>
#include <sys/types.h>
#include <variant>
#include <vector>

#include "core/plugin/open_file.h"

namespace ciuic::core {

enum class Trust {
  Any,     // only that it is a regular file; for file systems whose owners and modes say nothing
  Owner,   // the default
  Strict,  // root or ourselves alone, nothing that a group can write, no folder in a sticky one
};

/// Who runs, from where: what the rule compares with. Tests make their own.
struct TrustContext {
  uid_t user = 0;
  uid_t executable_owner = 0;
  std::string executable_folder;  // real path

  static TrustContext of_this_process();
};

struct TrustProblem {
  std::string reason;
  std::string remedy;
};

/// The file, opened for reading, or why it is not trusted. `path` is absolute. The last component
/// may not be a symbolic link; folders may, and it is the folders behind them that are judged.
std::variant<OpenFile, TrustProblem> open_trusted(const std::string& path, Trust rule,
                                                  const TrustContext& context);

/// Where modes say that others may write, may they? Not where the group is the owner's private one
/// (as umask 002 leaves it).
bool is_private_group(uid_t owner, gid_t group);

}  // namespace ciuic::core
