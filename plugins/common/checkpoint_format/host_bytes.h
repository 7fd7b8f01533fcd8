// SPDX-License-Identifier: MIT
//
// Tensors of any layout and device as contiguous host bytes, and back.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <ciuic/abi/types.h>
#include <ciuic/host.hpp>

namespace ciuic::plugins::checkpoint {

/// A tensor's elements in row-major order. Borrowed from a STABLE contiguous host tensor, a copy of
/// any other.
class HostBytes final {
 public:
  HostBytes() = default;
  /// Waits for the stream. Device memory needs the "ciuic.tensor" service.
  HostBytes(const Host& host, const ciuic_tensor& tensor, const ciuic_stream* stream);
  /// A copy of plain bytes.
  explicit HostBytes(std::string_view bytes);

  [[nodiscard]] const char* data() const noexcept { return data_; }
  [[nodiscard]] size_t size() const noexcept { return size_; }

 private:
  char* own(size_t bytes);

  std::unique_ptr<char[]> owned_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

/// Lets `fill` write the tensor's elements in row-major order: in place where the tensor allows it,
/// else through a copy.
void fill_tensor(const Host& host, const ciuic_tensor& into, const ciuic_stream* stream,
                 const std::function<void(char* bytes)>& fill);

}  // namespace ciuic::plugins::checkpoint
