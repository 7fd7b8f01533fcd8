// SPDX-License-Identifier: MIT
#include "core/data/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

Failure unreadable(const std::string& file) {
  const int error = errno;
  return Failure(ExitCode::Usage, file + " cannot be read: " + std::strerror(error), "",
                 {{"file", file}, {"errno", std::to_string(error)}});
}

/// Closes at the end of a scope.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) {
      ::close(number);
    }
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& file, const std::string& remedy) {
  // Without waiting for the writer of a pipe; a plain file does not know the flag.
  const Descriptor descriptor{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat info {};
  if (descriptor.number < 0 || ::fstat(descriptor.number, &info) != 0) {
    throw unreadable(file);
  }
  if (!S_ISREG(info.st_mode) || info.st_size == 0) {
    throw Failure(ExitCode::Usage,
                  file + (S_ISREG(info.st_mode) ? " is empty" : " is no plain file"), remedy,
                  {{"file", file}});
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.number, 0);
  if (data == MAP_FAILED) {
    throw unreadable(file);
  }
  data_ = data;
  size_ = size;
}

MappedFile::~MappedFile() {
  if (size_ > 0) {
    ::munmap(data_, size_);
  }
}

MappedFile::MappedFile(MappedFile&& o) noexcept
    : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  return *this;
}

}  // namespace ciuic::core
