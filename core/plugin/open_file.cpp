// SPDX-License-Identifier: MIT
#include "core/plugin/open_file.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ciuic::core {

OpenFile::~OpenFile() { close(); }

void OpenFile::close() noexcept {
  if (fd_ >= 0) {
    ::close(std::exchange(fd_, -1));
  }
}

std::optional<std::vector<std::byte>> OpenFile::read_all(size_t limit) const {
  struct stat status {};
  if (fstat(fd_, &status) != 0) {
    return std::nullopt;
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size > limit) {
    errno = EFBIG;
    return std::nullopt;
  }
  // One byte more than it had: a file that grows meanwhile is seen.
  std::vector<std::byte> bytes(size + 1);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return std::nullopt;
    }
    if (n == 0) {
      break;
    }
    done += static_cast<size_t>(n);
  }
  if (done > size) {
    errno = EBUSY;
    return std::nullopt;
  }
  bytes.resize(done);
  return bytes;
}

bool OpenFile::write_all(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

std::optional<std::string> read_text(const std::string& path, size_t limit) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    return std::nullopt;
  }
  const auto bytes = file.read_all(limit);
  if (!bytes) {
    return std::nullopt;
  }
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

bool replace_text(const std::string& path, const std::string& text) {
  std::string beside = path + ".XXXXXX";
  OpenFile file(mkostemp(beside.data(), O_CLOEXEC));
  if (!file) {
    return false;
  }
  if (!file.write_all(std::as_bytes(std::span(text))) ||
      ::rename(beside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside.c_str());
    errno = error;
    return false;
  }
  return true;
}

}  // namespace ciuic::core
