// SPDX-License-Identifier: MIT
//
// SharedFile for ranks that are threads of one process: who opens memory gets its maker's mapping. So
// ThreadSanitizer, which tells memory by its address, sees each access that meets another.
#include <cstdlib>
#include <map>
#include <mutex>

#include <ciuic/error.hpp>

#include "shared_file.h"

namespace ciuic::plugins::shm {
namespace {

struct Pieces {
  struct Piece {
    char* data;
    int num_users;
  };
  std::mutex mutex;
  std::map<int, Piece> by_descriptor;
  int next = 1000;  // no descriptors of the system's
};

Pieces& pieces() {
  static Pieces all;
  return all;
}

}  // namespace

SharedFile SharedFile::make(const char*, size_t bytes) {
  Pieces& all = pieces();
  const std::lock_guard lock(all.mutex);
  SharedFile file;
  file.bytes_ = bytes;
  file.data_ = static_cast<char*>(std::calloc(bytes, 1));
  file.descriptor_ = all.next++;
  all.by_descriptor[file.descriptor_] = {file.data_, 1};
  return file;
}

SharedFile SharedFile::open(int, int descriptor, size_t bytes) {
  Pieces& all = pieces();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_descriptor.find(descriptor);
  if (found == all.by_descriptor.end()) {
    throw Error(CIUIC_UNAVAILABLE, "its maker has closed it");
  }
  ++found->second.num_users;
  SharedFile file;
  file.bytes_ = bytes;
  file.data_ = found->second.data;
  return file;
}

void SharedFile::close_descriptor() { descriptor_ = -1; }

SharedFile::~SharedFile() {
  Pieces& all = pieces();
  const std::lock_guard lock(all.mutex);
  for (auto piece = all.by_descriptor.begin(); piece != all.by_descriptor.end(); ++piece) {
    if (piece->second.data == data_) {
      if (--piece->second.num_users == 0) {
        std::free(data_);
        all.by_descriptor.erase(piece);
      }
      return;
    }
  }
}

}  // namespace ciuic::plugins::shm
