// SPDX-License-Identifier: MIT
//
// Writes tensors where a layout says, converted on the way. Memory: a buffer, and of a tensor
// that becomes FP8 blocks and comes in pieces, the whole.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint_format/files.h"
#include "layout.h"

namespace ciuic::plugins::safetensors {

class TensorWriter final {
 public:
  /// Makes the files and writes their headers. `paths`: one for each file of the layout. Both
  /// references must outlive it.
  TensorWriter(const checkpoint::Files& files, const Layout& layout,
               const std::vector<std::string>& paths);

  /// Elements [begin, begin + count) of a target, of the type that it is put as.
  void write(const Target& target, int64_t begin, int64_t count, const char* bytes);
  /// All is in the files, and durable.
  void finish();

 private:
  struct Assembly {
    std::string bytes;
    int64_t count = 0;
  };

  void put(size_t file, uint64_t offset, const void* data, size_t bytes);
  void flush();
  void write_converted(const Target& target, int64_t begin, int64_t count, const char* bytes);
  void write_blocks(const Target& target, const char* bytes);

  std::vector<checkpoint::File> outputs_;
  // Gathers what follows on each other, so that a thousand small tensors are a few writes.
  std::string buffer_;
  size_t buffer_file_ = 0;
  uint64_t buffer_offset_ = 0;
  std::map<const Target*, Assembly> assemblies_;
};

}  // namespace ciuic::plugins::safetensors
