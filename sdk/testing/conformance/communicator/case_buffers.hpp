// SPDX-License-Identifier: MIT
//
// One rank's memory for a case: tensors between canaries, and the struct that submit reads. The
// structs can be taken away while the work goes on, the memory stays.
#pragma once

#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cases.hpp"
#include "numbers.hpp"

namespace ciuic::testing::communicator {

/// Bytes between two canaries.
class FencedBytes {
 public:
  static constexpr unsigned char kFill = 0xA5;  // of what has not been written

  FencedBytes(size_t bytes, size_t before)
      : before_(before + kFence),
        bytes_(bytes),
        memory_(new (std::align_val_t(64)) unsigned char[before_ + bytes + kFence]) {
    std::memset(memory_.get(), kFill, before_ + bytes + kFence);
  }

  [[nodiscard]] char* base() const noexcept {
    return reinterpret_cast<char*>(memory_.get()) + kFence;
  }
  [[nodiscard]] char* data() const noexcept {
    return reinterpret_cast<char*>(memory_.get()) + before_;
  }
  [[nodiscard]] size_t size() const noexcept { return bytes_; }
  /// Bytes from the data to the nearest write outside it; nothing when there is none.
  [[nodiscard]] std::optional<int64_t> stray_write() const {
    for (size_t i = 0; i < kFence; ++i) {
      if (memory_[before_ + bytes_ + i] != kFill) {
        return static_cast<int64_t>(i);
      }
    }
    for (size_t i = 1; i <= before_; ++i) {
      if (memory_[before_ - i] != kFill) {
        return -static_cast<int64_t>(i);
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr size_t kFence = 128;
  struct Free {
    void operator()(unsigned char* p) const { ::operator delete[](p, std::align_val_t(64)); }
  };
  size_t before_;
  size_t bytes_;
  std::unique_ptr<unsigned char[], Free> memory_;
};

/// What a submit reads: freed as soon as it has returned.
struct CallStructs {
  ciuic_collective c{};
  ciuic_tensor in{}, out{};
  int64_t in_shape[3]{}, in_strides[3]{}, out_shape[3]{}, out_strides[3]{};
  int64_t in_counts[16]{}, in_offsets[16]{}, out_counts[16]{}, out_offsets[16]{};
  char label[96]{};
};

class CaseBuffers {
 public:
  CaseBuffers(const Case& c, int rank, int world);

  /// Fills `structs`; they point at each other and at this object's memory.
  void describe_call(CallStructs& structs, int64_t timeout_ns) const;
  /// Nothing, or what is wrong with the output, the input or the memory around them.
  [[nodiscard]] std::optional<std::string> find_fault() const;
  /// Of those, the memory around them alone.
  [[nodiscard]] std::optional<std::string> find_stray_write() const;
  /// Of the output.
  [[nodiscard]] uint64_t bits() const;

 private:
  [[nodiscard]] char* in_data() const;
  [[nodiscard]] char* out_data() const;
  void describe_tensor(ciuic_tensor& t, int64_t* shape, int64_t* strides, const FencedBytes& memory,
                       char* data, int64_t elements) const;

  Case case_;
  int rank_, world_;
  Layout layout_;
  size_t width_;
  std::vector<char> input_;
  std::optional<FencedBytes> in_, out_;  // in place: one of them holds both
};

/// While an exception unwinds, works that are under way may still write: their memory stays.
struct LeaveWhileUnwinding {
  void operator()(CaseBuffers* buffers) const {
    if (std::uncaught_exceptions() == 0) {
      delete buffers;
    }
  }
};
using KeptBuffers = std::unique_ptr<CaseBuffers, LeaveWhileUnwinding>;

inline KeptBuffers make_buffers(const Case& c, int rank, int world) {
  return KeptBuffers(new CaseBuffers(c, rank, world));
}

}  // namespace ciuic::testing::communicator
