// SPDX-License-Identifier: MIT
//
// The "ciuic.io" service over POSIX files: what checkpoint plugins do with disks goes through this
// table, so that a test can put faults and a log in between. Contract: ciuic/abi/services.h.
#pragma once

#include <ciuic/abi/host.h>
#include <ciuic/abi/services.h>

namespace ciuic::core {

/// One table for one instance: its statuses are made with that instance's host table. Any thread;
/// nothing is shared between calls but the file handles, each of which belongs to whoever opened
/// it.
///
/// Beyond the contract: paths are plain ones (no NUL, not empty); only regular files are opened;
/// make_directory is content with a directory that is there, and what it made survives a power cut;
/// `space` of a path that is not there yet is that of its nearest parent; CIUIC_IO_DIRECT keeps the
/// file out of the page cache once it is synced.
class IoService final {
 public:
  /// `host` outlives the service.
  explicit IoService(const ciuic_host* host) noexcept;
  IoService(const IoService&) = delete;
  IoService& operator=(const IoService&) = delete;

  [[nodiscard]] const ciuic_io_service& table() const noexcept { return table_; }

 private:
  ciuic_io_service table_{};
};

}  // namespace ciuic::core
