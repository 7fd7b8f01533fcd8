// SPDX-License-Identifier: MIT
#include "shared_file.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ciuic/error.hpp>

namespace ciuic::plugins::shm {
namespace {

[[noreturn]] void fail(int32_t code, const std::string& what) {
  throw Error(code, "shm: " + what + ": " + std::strerror(errno));
}

/// Beyond RLIMIT_FSIZE ftruncate would raise SIGXFSZ, which ends the process.
void check_file_size_limit(size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      bytes > limit.rlim_cur) {
    throw Error(CIUIC_EXHAUSTED, "shm: no " + std::to_string(bytes) +
                                     " bytes of shared memory: the limit of a file's size is " +
                                     std::to_string(limit.rlim_cur) + " (ulimit -f)");
  }
}

}  // namespace

SharedFile SharedFile::make(const char* what, size_t bytes) {
  check_file_size_limit(bytes);
  SharedFile file;
  file.bytes_ = bytes;
  file.descriptor_ = ::memfd_create(what, MFD_CLOEXEC);
  if (file.descriptor_ < 0) {
    fail(errno == ENOSYS || errno == EPERM ? CIUIC_UNIMPLEMENTED : CIUIC_EXHAUSTED,
         "the system refuses shared memory (memfd_create)");
  }
  if (::ftruncate(file.descriptor_, static_cast<off_t>(bytes)) != 0) {
    fail(CIUIC_EXHAUSTED, "no " + std::to_string(bytes) + " bytes of shared memory");
  }
  file.map(what);
  return file;
}

SharedFile SharedFile::open(int pid, int descriptor, size_t bytes) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
  SharedFile file;
  file.bytes_ = bytes;
  file.descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file.descriptor_ < 0) {
    fail(CIUIC_UNAVAILABLE, "cannot open a peer's shared memory at " + path);
  }
  struct stat status {};
  if (::fstat(file.descriptor_, &status) != 0 || static_cast<size_t>(status.st_size) != bytes) {
    throw Error(CIUIC_UNAVAILABLE, "shm: " + path + " has " + std::to_string(status.st_size) +
                                       " bytes, expected " + std::to_string(bytes) +
                                       "; its maker has closed it");
  }
  file.map(path);
  file.close_descriptor();
  return file;
}

void SharedFile::map(const std::string& what) {
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) {
    fail(CIUIC_EXHAUSTED, "cannot map " + std::to_string(bytes_) + " bytes of " + what);
  }
  data_ = static_cast<char*>(memory);
  // Hints: both may be refused. Core dumps need no copies of what the ranks hold anyway.
  ::madvise(data_, bytes_, MADV_HUGEPAGE);
  ::madvise(data_, bytes_, MADV_DONTDUMP);
}

void SharedFile::close_descriptor() {
  if (descriptor_ >= 0) {
    ::close(std::exchange(descriptor_, -1));
  }
}

SharedFile::~SharedFile() {
  if (data_ != nullptr) {
    ::munmap(data_, bytes_);
  }
  close_descriptor();
}

}  // namespace ciuic::plugins::shm
