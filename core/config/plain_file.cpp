// SPDX-License-Identifier: MIT
#include "core/config/plain_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config/quantity.h"

namespace ciuic::core {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

std::string unreadable() { return std::string("cannot be read: ") + std::strerror(errno); }

/// What stands there in place of a file; empty: a file.
std::string other_than_a_file(mode_t mode) {
  return S_ISREG(mode)    ? ""
         : S_ISDIR(mode)  ? "is a folder"
         : S_ISFIFO(mode) ? "is a pipe"
         : S_ISSOCK(mode) ? "is a socket"
                          : "is a device";
}

/// Until the end or one byte past `most`. False: an error, in errno.
bool read_to_the_end(int fd, size_t most, std::string& bytes) {
  while (bytes.size() <= most) {
    const size_t had = bytes.size();
    bytes.resize(std::min(most + 1, had + kChunkBytes));
    const ssize_t n = ::read(fd, bytes.data() + had, bytes.size() - had);
    bytes.resize(had + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno != EINTR) {
      return false;
    }
    if (n == 0) {
      return true;
    }
  }
  return true;
}

}  // namespace

PlainFile read_plain_file(const std::string& path, size_t most) {
  // O_NONBLOCK: a pipe without a writer would block the open. Files ignore it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return {"", errno == ENXIO ? "is a socket" : unreadable()};
  }
  const std::unique_ptr<const int, void (*)(const int*)> closed(&fd,
                                                                [](const int* f) { close(*f); });
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return {"", unreadable()};
  }
  if (std::string other = other_than_a_file(info.st_mode); !other.empty()) {
    return {"", std::move(other)};
  }
  const std::string too_long = "is longer than " + format_size(static_cast<int64_t>(most));
  if (static_cast<uint64_t>(info.st_size) > most) {
    return {"", too_long};
  }
  PlainFile file;
  if (!read_to_the_end(fd, most, file.bytes)) {
    return {"", unreadable()};
  }
  // It may have grown meanwhile; files of /proc say size 0.
  return file.bytes.size() > most ? PlainFile{"", too_long} : file;
}

}  // namespace ciuic::core
