// SPDX-License-Identifier: MIT
//
// Where ciuic keeps what it made for itself: staged plugins and probe results in the user's cache,
// the quarantine in the user's state folder. Folders of mode 0700 that nobody else can write.
#pragma once

#include <optional>
#include <string>

namespace ciuic::core {

/// $XDG_CACHE_HOME/ciuic, or ~/.cache/ciuic; where that cannot be written or nothing may be executed
/// from it, a folder ciuic-<uid> in $TMPDIR or /tmp. Created. Throws Failure (Environment) when
/// there is no such place.
std::string cache_folder();

/// $XDG_STATE_HOME/ciuic, or ~/.local/state/ciuic, else as above.
std::string state_folder();

/// Makes `path` (its parents too) if it is not there, and says whether it is ours alone: a folder,
/// no link, owned by us, mode 0700.
bool make_private_folder(const std::string& path);

/// Holds an exclusive lock on a file of that name while it lives: one process of this user and
/// machine at a time. Waits at most `seconds`; goes on without the lock after that, since all that
/// it guards is written by rename.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path, double seconds = 30);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  int fd_;
};

}  // namespace ciuic::core
