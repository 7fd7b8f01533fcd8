// SPDX-License-Identifier: MIT
//
// Between the arguments of an ABI function and the values of a call log, in both directions, from
// the member lists of abi_fields.h.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <ciuic/view.hpp>

#include "core/plugin/decorator/abi_fields.h"
#include "core/plugin/decorator/call_log.h"

namespace ciuic::core {

/// A tensor's memory as it is now. Host memory without gaps only; `limit`: the most bytes to keep.
LogTensor log_tensor(const ciuic_tensor& tensor, int64_t limit);

/// "code, flags, peer, text"; nothing for success. Borrows the status.
LogValue log_status(const ciuic_host* host, const ciuic_status* status);

template <typename T>
concept AbiStruct = std::is_class_v<T> && std::is_trivially_default_constructible_v<T> &&
                    !std::is_same_v<T, ciuic_str> &&
                    !std::is_same_v<T, ciuic_array> && !std::is_same_v<T, ciuic_tensor> &&
                    !std::is_same_v<T, ciuic_field>;
template <typename T>
concept AbiNumber = std::is_arithmetic_v<T>;

/// Arguments to values.
class Encoder {
 public:
  /// group_size: how many numbers stand behind the counts of a collective. blind: the tensors'
  /// memory is being written, so it is not looked at.
  Encoder(int64_t tensor_limit, int32_t group_size, bool is_blind = false)
      : tensor_limit_(tensor_limit), group_size_(group_size), is_blind_(is_blind) {}

  /// Tensors met so far, as copies of their structs: to look at their memory again later.
  [[nodiscard]] const std::vector<Tensor>& tensors() const noexcept { return tensors_; }

  template <AbiNumber T>
  LogValue encode(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return {static_cast<double>(x)};
    } else if constexpr (std::is_signed_v<T>) {
      return {static_cast<int64_t>(x)};
    } else {
      return {static_cast<uint64_t>(x)};
    }
  }
  LogValue encode(ciuic_str x) { return {std::string(to_view(x))}; }
  LogValue encode(const ciuic_tensor* x);
  LogValue encode(const ciuic_field& x);
  template <AbiStruct T>
  LogValue encode(const T& x) {
    return fields(*this, const_cast<T&>(x));  // one list serves both directions
  }
  template <AbiStruct T>
  LogValue encode(const T* x) {
    return x == nullptr ? LogValue{} : encode(*x);
  }
  template <typename T>
  LogValue encode_items(ciuic_array array) {
    LogValue::List list;
    for (const T& x : ArrayView<T>(array)) {
      list.push_back(encode(x));
    }
    return {std::move(list)};
  }
  template <typename T, typename N>
  LogValue encode(const NumberField<T, N>& x) {
    return numbers_at(x.data, x.data == nullptr ? 0 : static_cast<size_t>(x.count));
  }
  LogValue encode(const CountField& x) {
    return x.data == nullptr ? LogValue{} : numbers_at(x.data, static_cast<size_t>(group_size_));
  }
  template <typename T>
  LogValue encode(const ItemField<T>& x) {
    return encode_items<T>(x.array);
  }
  LogValue encode(const TensorListField& x) {
    LogValue::List list;
    for (uint32_t i = 0; i < x.count; ++i) {
      list.push_back(encode(x.data[i]));
    }
    return {std::move(list)};
  }

  template <typename... T>
  LogValue operator()(const char* names, const T&... parts) {
    LogValue::List list;
    list.reserve(sizeof...(parts));
    (list.push_back(encode(parts)), ...);
    return {std::move(list), names};
  }

 private:
  template <typename T>
  LogValue numbers_at(const T* data, size_t count) {
    LogValue::List list;
    for (size_t i = 0; i < count; ++i) {
      list.push_back(encode(data[i]));
    }
    return {std::move(list)};
  }

  int64_t tensor_limit_;
  int32_t group_size_;
  bool is_blind_;
  std::vector<Tensor> tensors_;
};

/// The memory of these tensors as it is now.
LogValue log_tensors(const std::vector<Tensor>& tensors, int64_t limit);

/// A value that does not fit the function it is for.
class LogMismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// A call that the log does not hold whole: a tensor's bytes are not in it.
class LogIncomplete : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Values to arguments. Owns all memory that the arguments point at.
class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Tensors made so far, in the encoder's order.
  [[nodiscard]] std::vector<Tensor> tensors() const { return {tensors_.begin(), tensors_.end()}; }

  template <AbiNumber T>
  void decode(const LogValue& v, T& out) {
    if constexpr (std::is_floating_point_v<T>) {
      out = static_cast<T>(get<double>(v));
    } else if constexpr (std::is_signed_v<T>) {
      out = static_cast<T>(get<int64_t>(v));
      check(static_cast<int64_t>(out) == get<int64_t>(v), "a number is too large");
    } else {
      out = static_cast<T>(get<uint64_t>(v));
      check(static_cast<uint64_t>(out) == get<uint64_t>(v), "a number is too large");
    }
  }
  void decode(const LogValue& v, ciuic_str& out) { out = to_str(text(get<std::string>(v))); }
  void decode(const LogValue& v, const ciuic_tensor*& out);
  void decode(const LogValue& v, ciuic_field& out);
  template <AbiStruct T>
  void decode(const LogValue& v, T& out) {
    out = T{};
    if constexpr (requires { out.struct_size; }) {
      out.struct_size = sizeof(T);
    }
    const LogValue::List& list = get<LogValue::List>(v);
    Parts parts{*this, list};
    fields(parts, out);
  }
  template <AbiStruct T>
  void decode(const LogValue& v, const T*& out) {
    out = nullptr;
    if (v.value.index() != 0) {
      T* made = array<T>(1);
      decode(v, *made);
      out = made;
    }
  }
  template <typename T>
  void decode_items(const LogValue& v, ciuic_array& out) {
    const LogValue::List& list = get<LogValue::List>(v);
    T* made = array<T>(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      decode(list[i], made[i]);
    }
    out = {made, static_cast<uint32_t>(list.size()), sizeof(T)};
  }
  template <typename T, typename N>
  void decode(const LogValue& v, NumberField<T, N> out) {
    const size_t count = numbers_of(v, out.data);
    check(!out.is_shared || count == static_cast<size_t>(out.count), "lists differ in length");
    out.count = static_cast<N>(count);
  }
  void decode(const LogValue& v, CountField out) {
    out.data = nullptr;
    if (v.value.index() != 0) {
      numbers_of(v, out.data);
    }
  }
  template <typename T>
  void decode(const LogValue& v, ItemField<T> out) {
    decode_items<T>(v, out.array);
  }
  void decode(const LogValue& v, TensorListField out) {
    const LogValue::List& list = get<LogValue::List>(v);
    auto* made = array<const ciuic_tensor*>(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      decode(list[i], made[i]);
    }
    out.data = made;
    out.count = static_cast<uint32_t>(list.size());
  }

  /// A zeroed array that lives as long as this object.
  template <typename T>
  T* array(size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    memory_.emplace_back(std::max<size_t>(count * sizeof(T), 1) + alignof(std::max_align_t));
    void* at = memory_.back().data();
    size_t space = memory_.back().size();
    return static_cast<T*>(std::align(alignof(T), count * sizeof(T), at, space));
  }

  static void check(bool condition, const char* what) {
    if (!condition) {
      throw LogMismatch(what);
    }
  }
  template <typename T>
  static const T& get(const LogValue& v) {
    const T* value = std::get_if<T>(&v.value);
    check(value != nullptr, "a value has another type than its function takes");
    return *value;
  }

 private:
  /// The list of one struct, handed out part by part.
  struct Parts {
    Decoder& decoder;
    const LogValue::List& list;

    template <typename... T>
    int operator()(const char*, T&&... parts) {
      check(list.size() == sizeof...(parts), "a struct has another number of members");
      size_t i = 0;
      (decoder.decode(list[i++], parts), ...);
      return 0;
    }
  };

  template <typename T>
  size_t numbers_of(const LogValue& v, const T*& data) {
    const LogValue::List& list = get<LogValue::List>(v);
    T* made = array<T>(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      decode(list[i], made[i]);
    }
    data = made;
    return list.size();
  }
  const std::string& text(const std::string& t) { return texts_.emplace_back(t); }

  std::deque<std::string> texts_;
  std::deque<std::vector<std::byte>> memory_;
  std::deque<Tensor> tensors_;
};

}  // namespace ciuic::core
