// SPDX-License-Identifier: MIT
#include "checkpoint_format/tensor_types.h"

#include <array>
#include <limits>

#include <ciuic/error.hpp>
#include <ciuic/view.hpp>

namespace ciuic::plugins::checkpoint {
namespace {

struct Named {
  std::string_view name;
  ciuic_dtype dtype;
};

constexpr std::array<Named, 15> kTypes{{
    {"F64", {CIUIC_DTYPE_FLOAT, 64, 1}},
    {"F32", {CIUIC_DTYPE_FLOAT, 32, 1}},
    {"F16", {CIUIC_DTYPE_FLOAT, 16, 1}},
    {"BF16", {CIUIC_DTYPE_BFLOAT, 16, 1}},
    {"I64", {CIUIC_DTYPE_INT, 64, 1}},
    {"I32", {CIUIC_DTYPE_INT, 32, 1}},
    {"I16", {CIUIC_DTYPE_INT, 16, 1}},
    {"I8", {CIUIC_DTYPE_INT, 8, 1}},
    {"U8", {CIUIC_DTYPE_UINT, 8, 1}},
    {"U16", {CIUIC_DTYPE_UINT, 16, 1}},
    {"U32", {CIUIC_DTYPE_UINT, 32, 1}},
    {"U64", {CIUIC_DTYPE_UINT, 64, 1}},
    {"BOOL", {CIUIC_DTYPE_BOOL, 8, 1}},
    {"F8_E4M3", {CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1}},
    {"F8_E5M2", {CIUIC_DTYPE_FLOAT8_E5M2, 8, 1}},
}};

constexpr size_t kPrintableLength = 120;

}  // namespace

std::string type_name(ciuic_dtype dtype) {
  for (const Named& t : kTypes) {
    if (same(t.dtype, dtype)) {
      return std::string(t.name);
    }
  }
  throw Error(CIUIC_INVALID, "safetensors has no element type for " + dtype_name(dtype));
}

std::optional<ciuic_dtype> type_from_name(std::string_view name) {
  for (const Named& t : kTypes) {
    if (t.name == name) {
      return t.dtype;
    }
  }
  return std::nullopt;
}

uint64_t type_bytes(ciuic_dtype dtype) { return static_cast<uint64_t>(dtype_bytes(dtype)); }

std::optional<int64_t> shape_elements(const std::vector<int64_t>& shape, ciuic_dtype dtype) {
  int64_t nonzero = 1;
  bool is_empty = false;
  for (const int64_t d : shape) {
    if (d < 0) {
      return std::nullopt;
    }
    if (d == 0) {
      is_empty = true;
    } else if (__builtin_mul_overflow(nonzero, d, &nonzero)) {
      return std::nullopt;
    }
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(nonzero, dtype_bytes(dtype), &bytes)) {
    return std::nullopt;
  }
  return is_empty ? 0 : nonzero;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, kPrintableLength)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text.size() > kPrintableLength ? out + "..." : out;
}

bool is_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || text.size() - i < length) {
      return false;
    }
    uint32_t point = length == 1 ? first : first & (0x7fu >> length);
    for (size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0) != 0x80) {
        return false;
      }
      point = (point << 6) | (next & 0x3f);
    }
    const bool is_overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    if (is_overlong || (point >= 0xd800 && point < 0xe000) || point > 0x10ffff) {
      return false;
    }
    i += length;
  }
  return true;
}

void check_key(std::string_view key) {
  if (key.empty()) {
    throw Error(CIUIC_INVALID, "a key is empty");
  }
  if (key.find('\0') != std::string_view::npos) {
    throw Error(CIUIC_INVALID, "key " + printable(key) + " holds a NUL byte");
  }
  if (!is_utf8(key)) {
    throw Error(CIUIC_INVALID, "key " + printable(key) + " is not UTF-8");
  }
}

}  // namespace ciuic::plugins::checkpoint
