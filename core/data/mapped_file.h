// SPDX-License-Identifier: MIT
//
// A whole file in memory, as the kernel pages it. Somebody who shortens the file under a run ends it
// by SIGBUS.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ciuic::core {

class MappedFile {
 public:
  MappedFile() = default;
  /// Throws Failure (Usage) if it cannot be read, is empty or is no plain file; `remedy` says what
  /// to do about the latter two.
  MappedFile(const std::string& file, const std::string& remedy);
  ~MappedFile();
  MappedFile(MappedFile&& o) noexcept;
  MappedFile& operator=(MappedFile&& o) noexcept;

  [[nodiscard]] std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace ciuic::core
