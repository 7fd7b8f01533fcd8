// SPDX-License-Identifier: MIT
//
// Arrays that a plugin shows to the host, before their elements are read: a stride of 0 would show
// no element at all, a short one elements of others' bytes.
#pragma once

#include <cstddef>
#include <string>

#include <ciuic/view.hpp>

namespace ciuic::core {

/// What is wrong with an array of T, or with the struct_size of one of its elements; empty when
/// nothing is. `what` names it: "its option table".
template <typename T>
std::string array_problem(const ciuic_array& array, const std::string& what) {
  if (array.count == 0) {
    return "";
  }
  if (array.base == nullptr) {
    return what + " is NULL, and says to have " + std::to_string(array.count) + " elements";
  }
  if (array.stride < sizeof(T) || array.stride % alignof(T) != 0) {
    return what + " has a stride of " + std::to_string(array.stride) + " bytes, expected " +
           std::to_string(sizeof(T));
  }
  if constexpr (requires(const T& t) { t.struct_size; }) {
    size_t i = 0;
    for (const T& element : ArrayView<T>(array)) {
      if (element.struct_size < sizeof(T) || element.struct_size > array.stride) {
        return what + ": element " + std::to_string(i) + " has a struct_size of " +
               std::to_string(element.struct_size) + ", expected " + std::to_string(sizeof(T));
      }
      ++i;
    }
  }
  return "";
}

}  // namespace ciuic::core
