// SPDX-License-Identifier: MIT
//
// A whole call between its C arguments and a call log: which arguments go in, which come out, and
// what the tensors hold afterwards. One overload a type of argument; a function of the ABI needs
// nothing of its own here.
#pragma once

#include <tuple>

#include "core/plugin/decorator/codec.h"
#include "core/plugin/trampoline/slots.h"

namespace ciuic::core {

template <typename T>
inline constexpr bool kIsOut = false;
template <typename T>
inline constexpr bool kIsOut<T*> = !std::is_const_v<T> && !std::is_void_v<T>;

/// Arguments of slot S, which go by A.
template <typename S>
class CallCodec {
 public:
  // ---- to values ----

  template <typename... A>
  static LogValue encode_in(Encoder& encoder, const A&... args) {
    LogValue::List list;
    ((kIsOut<A> ? void() : list.push_back(in(encoder, args))), ...);
    return {std::move(list)};
  }
  template <typename... A>
  static LogValue encode_out(Encoder& encoder, const A&... args) {
    LogValue::List list;
    (add_out(encoder, list, args), ...);
    return {std::move(list)};
  }

  // ---- and back ----

  /// Fills the arguments; out-arguments get memory of the decoder's.
  template <typename... A>
  static void decode(Decoder& decoder, const LogValue& v, std::tuple<A...>& args) {
    const auto& list = Decoder::get<LogValue::List>(v);
    size_t i = 0;
    std::apply([&](A&... a) { (one(decoder, list, i, a), ...); }, args);
    Decoder::check(i == list.size(), "a call has another number of arguments");
  }

 private:
  using Items = typename S::Items;

  static LogValue in(Encoder& e, ciuic_array x) {
    if constexpr (std::is_void_v<Items>) {
      return e.encode(uint64_t{x.count});
    } else {
      return e.encode_items<Items>(x);
    }
  }
  // Functions and memory of this process mean nothing elsewhere: only whether they are there.
  static LogValue in(Encoder& e, const ciuic_stream* x) { return e.encode(x != nullptr); }
  static LogValue in(Encoder& e, const ciuic_writer* x) { return e.encode(x != nullptr); }
  static LogValue in(Encoder& e, const void* x) { return e.encode(x != nullptr); }
  static LogValue in(Encoder& e, void* x) { return e.encode(x != nullptr); }
  template <typename T>
  static LogValue in(Encoder& e, const T& x) {
    if constexpr (kIsOut<T>) {
      return {};
    } else {
      return e.encode(x);
    }
  }

  template <typename T>
  static void add_out(Encoder& e, LogValue::List& list, const T& x) {
    if constexpr (kIsOut<T>) {
      if constexpr (std::is_same_v<T, ciuic_work**>) {
        return;  // whether it is done at once is no result
      } else if constexpr (std::is_pointer_v<std::remove_pointer_t<T>>) {  // an archive, ...
        list.push_back(e.encode(*x != nullptr));
      } else if constexpr (!std::is_same_v<T, ciuic_array*>) {
        list.push_back(e.encode(*x));
      } else if constexpr (!std::is_void_v<Items>) {
        list.push_back(e.encode_items<Items>(*x));
      }
    }
  }

  template <typename T>
  static void one(Decoder& d, const LogValue::List& list, size_t& i, T& arg) {
    if constexpr (kIsOut<T>) {
      using Target = std::remove_pointer_t<T>;
      arg = d.array<Target>(1);
      if constexpr (AbiStruct<Target>) {
        if constexpr (requires { arg->struct_size; }) {
          arg->struct_size = sizeof(Target);
        }
      }
    } else {
      Decoder::check(i < list.size(), "a call has another number of arguments");
      argument(d, list[i++], arg);
    }
  }
  static void argument(Decoder& d, const LogValue& v, ciuic_array& arg) {
    if constexpr (!std::is_void_v<Items>) {
      d.decode_items<Items>(v, arg);
    } else {
      throw LogMismatch("an array of an unknown type");
    }
  }
  template <typename T>
  static void argument(Decoder& d, const LogValue& v, T& arg) {
    if constexpr (std::is_same_v<T, const ciuic_stream*>) {
      if (Decoder::get<uint64_t>(v) != 0) {
        throw LogIncomplete("the call was on a device's stream");
      }
      arg = nullptr;
    } else if constexpr (std::is_same_v<T, const ciuic_writer*> ||
                         std::is_void_v<std::remove_cv_t<std::remove_pointer_t<T>>>) {
      throw LogIncomplete("the call was with memory or functions of its process");
    } else {
      d.decode(v, arg);
    }
  }
};

}  // namespace ciuic::core
