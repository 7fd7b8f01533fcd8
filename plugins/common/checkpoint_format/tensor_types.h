// SPDX-License-Identifier: MIT
//
// Element types by their safetensors names, and sizes that do not wrap around.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/types.h>

namespace ciuic::plugins::checkpoint {

/// More dimensions than any tensor has; bounds what a hostile header makes us allocate.
inline constexpr size_t kMaxDimensions = 64;

/// "F32" and so on. Throws INVALID for a type that safetensors has no name for.
[[nodiscard]] std::string type_name(ciuic_dtype dtype);
[[nodiscard]] std::optional<ciuic_dtype> type_from_name(std::string_view name);

/// Bytes of one element.
[[nodiscard]] uint64_t type_bytes(ciuic_dtype dtype);

/// The product of a shape's dimensions (1 for 0-d). Nothing when a dimension is negative, or when
/// the elements or their bytes, counted without the dimensions that are 0, do not fit 63 bits: then
/// strides would wrap even for an empty tensor.
[[nodiscard]] std::optional<int64_t> shape_elements(const std::vector<int64_t>& shape,
                                                    ciuic_dtype dtype);

/// "[2, 3]"
[[nodiscard]] std::string shape_text(const std::vector<int64_t>& shape);

/// Foreign text for a message: one line, ASCII, not long.
[[nodiscard]] std::string printable(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

/// Throws INVALID unless the key can be a name: not empty, UTF-8, without NUL.
void check_key(std::string_view key);

}  // namespace ciuic::plugins::checkpoint
