// SPDX-License-Identifier: MIT
//
// Views over the ABI's value types: strings, arrays with a stride, tensors. They own nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ciuic/abi/types.h>
#include <ciuic/error.hpp>

namespace ciuic {

inline ciuic_str to_str(std::string_view s) noexcept { return {s.data(), s.size()}; }
inline std::string_view to_view(ciuic_str s) noexcept {
  return s.data == nullptr ? std::string_view() : std::string_view(s.data, s.size);
}

/// A ciuic_array seen as a sequence of T. The stride is the writer's sizeof(T), which may differ
/// from the reader's.
template <typename T>
class ArrayView {
 public:
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;

    iterator(const char* at, uint32_t stride) : at_(at), stride_(stride) {}
    const T& operator*() const { return *reinterpret_cast<const T*>(at_); }
    const T* operator->() const { return reinterpret_cast<const T*>(at_); }
    iterator& operator++() {
      at_ += stride_;
      return *this;
    }
    iterator operator++(int) {
      const iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const iterator& o) const { return at_ == o.at_; }
    bool operator!=(const iterator& o) const { return at_ != o.at_; }

   private:
    const char* at_;
    uint32_t stride_;
  };

  ArrayView(ciuic_array a) : array_(a) {}  // NOLINT: a view converts

  [[nodiscard]] uint32_t size() const noexcept { return array_.count; }
  [[nodiscard]] bool empty() const noexcept { return array_.count == 0; }
  const T& operator[](size_t i) const {
    return *reinterpret_cast<const T*>(static_cast<const char*>(array_.base) + i * array_.stride);
  }
  [[nodiscard]] iterator begin() const {
    return {static_cast<const char*>(array_.base), array_.stride};
  }
  [[nodiscard]] iterator end() const {
    return {static_cast<const char*>(array_.base) + size_t{array_.count} * array_.stride,
            array_.stride};
  }

 private:
  ciuic_array array_;
};

/// The other direction: a contiguous container as a ciuic_array. The container must outlive its
/// use.
template <typename Container>
ciuic_array to_array(const Container& c) noexcept {
  return {c.data(), static_cast<uint32_t>(c.size()), static_cast<uint32_t>(sizeof(*c.data()))};
}

// ---- dtypes ----

inline constexpr ciuic_dtype kF64{CIUIC_DTYPE_FLOAT, 64, 1};
inline constexpr ciuic_dtype kF32{CIUIC_DTYPE_FLOAT, 32, 1};
inline constexpr ciuic_dtype kF16{CIUIC_DTYPE_FLOAT, 16, 1};
inline constexpr ciuic_dtype kBF16{CIUIC_DTYPE_BFLOAT, 16, 1};
inline constexpr ciuic_dtype kI64{CIUIC_DTYPE_INT, 64, 1};
inline constexpr ciuic_dtype kI32{CIUIC_DTYPE_INT, 32, 1};
inline constexpr ciuic_dtype kU8{CIUIC_DTYPE_UINT, 8, 1};

inline bool same(ciuic_dtype a, ciuic_dtype b) noexcept {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
inline int64_t dtype_bytes(ciuic_dtype d) noexcept { return (int64_t{d.bits} * d.lanes + 7) / 8; }

inline std::string dtype_name(ciuic_dtype d) {
  const std::string bits = std::to_string(d.bits);
  switch (d.code) {
    case CIUIC_DTYPE_INT:
      return "i" + bits;
    case CIUIC_DTYPE_UINT:
      return "u" + bits;
    case CIUIC_DTYPE_FLOAT:
      return "f" + bits;
    case CIUIC_DTYPE_BFLOAT:
      return "bf" + bits;
    case CIUIC_DTYPE_BOOL:
      return "bool";
    case CIUIC_DTYPE_FLOAT8_E4M3FN:
      return "f8_e4m3fn";
    case CIUIC_DTYPE_FLOAT8_E5M2:
      return "f8_e5m2";
    default:
      return "dtype(" + std::to_string(d.code) + "," + bits + ")";
  }
}

template <typename T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr ciuic_dtype value = kF32;
};
template <>
struct dtype_of<double> {
  static constexpr ciuic_dtype value = kF64;
};
template <>
struct dtype_of<int64_t> {
  static constexpr ciuic_dtype value = kI64;
};
template <>
struct dtype_of<int32_t> {
  static constexpr ciuic_dtype value = kI32;
};
template <>
struct dtype_of<uint8_t> {
  static constexpr ciuic_dtype value = kU8;
};

// ---- tensors ----

inline int64_t num_elements(const ciuic_tensor& t) noexcept {
  int64_t n = 1;
  for (int32_t i = 0; i < t.t.ndim; ++i) {
    n *= t.t.shape[i];
  }
  return n;
}
inline int64_t tensor_bytes(const ciuic_tensor& t) noexcept {
  return num_elements(t) * dtype_bytes(t.t.dtype);
}
inline void* tensor_data(const ciuic_tensor& t) noexcept {
  return t.t.data == nullptr ? nullptr : static_cast<char*>(t.t.data) + t.t.byte_offset;
}

/// Row-major without gaps (size-1 dimensions may have any stride).
inline bool is_contiguous(const ciuic_tensor& t) noexcept {
  int64_t expected = 1;
  for (int32_t i = t.t.ndim - 1; i >= 0; --i) {
    if (t.t.shape[i] != 1 && t.t.strides[i] != expected) {
      return num_elements(t) == 0;
    }
    expected *= t.t.shape[i];
  }
  return true;
}

/// The elements of a contiguous host tensor as T*. Throws UNIMPLEMENTED when type, layout or device
/// are not that: what the caller does not serve.
template <typename T>
T* elements(const ciuic_tensor& t) {
  if (!same(t.t.dtype, dtype_of<T>::value)) {
    raise(Error(CIUIC_UNIMPLEMENTED, "tensor " + std::string(to_view(t.name)) + ": got " +
                                         dtype_name(t.t.dtype) + ", expected " +
                                         dtype_name(dtype_of<T>::value)));
  }
  if (t.t.device.type != CIUIC_DEVICE_CPU || !is_contiguous(t)) {
    raise(Error(CIUIC_UNIMPLEMENTED,
                "tensor " + std::string(to_view(t.name)) + ": expected contiguous host memory"));
  }
  return static_cast<T*>(tensor_data(t));
}

/// A ciuic_tensor together with the shape and strides it points at. Contiguous.
class Tensor {
 public:
  Tensor() : Tensor(nullptr, kU8, {0}) {}
  Tensor(void* data, ciuic_dtype dtype, std::vector<int64_t> shape,
         ciuic_device device = {CIUIC_DEVICE_CPU, 0}, uint32_t flags = 0)
      : shape_(std::move(shape)), strides_(shape_.size()) {
    int64_t stride = 1;
    for (size_t i = shape_.size(); i-- > 0;) {
      strides_[i] = stride;
      stride *= shape_[i];
    }
    c_.struct_size = sizeof(c_);
    c_.flags = flags;
    c_.t = {stride == 0 ? nullptr : data,
            device,
            static_cast<int32_t>(shape_.size()),
            dtype,
            shape_.data(),
            strides_.data(),
            0};
    c_.name = {nullptr, 0};
  }
  Tensor(const Tensor& o) : shape_(o.shape_), strides_(o.strides_), c_(o.c_) { repoint(); }
  Tensor(Tensor&& o) noexcept
      : shape_(std::move(o.shape_)), strides_(std::move(o.strides_)), c_(o.c_) {
    repoint();
  }
  Tensor& operator=(Tensor o) noexcept {
    shape_.swap(o.shape_);
    strides_.swap(o.strides_);
    c_ = o.c_;
    repoint();
    return *this;
  }
  ~Tensor() = default;

  /// The name is borrowed; it must outlive the tensor.
  Tensor& named(std::string_view name) {
    c_.name = to_str(name);
    return *this;
  }
  [[nodiscard]] const ciuic_tensor& c() const noexcept { return c_; }
  [[nodiscard]] const ciuic_tensor* ptr() const noexcept { return &c_; }
  [[nodiscard]] const std::vector<int64_t>& shape() const noexcept { return shape_; }

 private:
  void repoint() {
    c_.t.shape = shape_.data();
    c_.t.strides = strides_.data();
  }

  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  ciuic_tensor c_{};
};

/// A place that owns its arrays: elements [begin, ...) of a box inside a global tensor.
class Place {
 public:
  /// The whole tensor is the box.
  explicit Place(std::vector<int64_t> shape, int64_t begin = 0)
      : global_(std::move(shape)), offset_(global_.size(), 0), box_(global_), begin_(begin) {}
  /// A model-parallel piece: a box of extent `box` at `offset`.
  Place(std::vector<int64_t> global_shape, std::vector<int64_t> offset, std::vector<int64_t> box,
        int64_t begin)
      : global_(std::move(global_shape)),
        offset_(std::move(offset)),
        box_(std::move(box)),
        begin_(begin) {}

  /// Valid as long as this object.
  [[nodiscard]] ciuic_place c() const noexcept {
    return {sizeof(ciuic_place),
            0,
            static_cast<int32_t>(global_.size()),
            0,
            global_.data(),
            offset_.data(),
            box_.data(),
            begin_};
  }

 private:
  std::vector<int64_t> global_;
  std::vector<int64_t> offset_;
  std::vector<int64_t> box_;
  int64_t begin_;
};

}  // namespace ciuic
