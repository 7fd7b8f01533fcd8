// SPDX-License-Identifier: MIT
//
// Parts of one-dimensional tensors, and memory that is taken again and again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <ciuic/host.hpp>
#include <ciuic/sharding/partition.hpp>
#include <ciuic/view.hpp>

namespace ciuic::plugins::stages {

/// Elements [r.begin, r.end) of a one-dimensional tensor.
inline Tensor slice(const Tensor& flat, sharding::Range r, uint32_t flags = 0) {
  const ciuic_dl& t = flat.c().t;
  char* data =
      t.data == nullptr ? nullptr : static_cast<char*>(t.data) + r.begin * dtype_bytes(t.dtype);
  return Tensor(data, t.dtype, {r.size()}, t.device, flags);
}

/// A buffer as one flat tensor.
inline Tensor flat_tensor(const Buffer& buffer, ciuic_dtype dtype, int64_t elements,
                          ciuic_device device) {
  return Tensor(buffer.data(), dtype, {elements}, device);
}

/// Buffers of few sizes that come and go: what is given back is kept for the next of its size, as long
/// as all together stay within the capacity. One that is needed is always given.
class BufferPool {
 public:
  BufferPool(const Host& host, ciuic_device device) : host_(host), device_(device) {}
  void set_capacity(int64_t bytes) { capacity_ = bytes; }

  [[nodiscard]] Buffer take(int64_t bytes) {
    const auto size = static_cast<size_t>(bytes);
    const auto kept = std::find_if(idle_.begin(), idle_.end(),
                                   [size](const Buffer& b) { return b.size() == size; });
    if (kept != idle_.end()) {
      Buffer out = std::move(*kept);
      idle_.erase(kept);
      return out;
    }
    while (!idle_.empty() && held_ + bytes > capacity_) {
      drop_oldest();
    }
    Buffer out(host_, device_, size);
    held_ += bytes;
    return out;
  }
  void give_back(Buffer buffer) {
    if (buffer.size() > 0) {
      idle_.push_back(std::move(buffer));
    }
    while (!idle_.empty() && held_ > capacity_) {
      drop_oldest();
    }
  }

 private:
  void drop_oldest() {
    held_ -= static_cast<int64_t>(idle_.front().size());
    idle_.erase(idle_.begin());
  }

  Host host_;
  ciuic_device device_;
  int64_t capacity_ = 0;
  int64_t held_ = 0;  // lent and idle
  std::vector<Buffer> idle_;
};

}  // namespace ciuic::plugins::stages
