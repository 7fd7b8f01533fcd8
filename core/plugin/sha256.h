// SPDX-License-Identifier: MIT
//
// SHA-256, by which plugins are known. The only place that knows libsodium.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ciuic::core {

/// 64 hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);
std::string sha256(std::string_view text);

/// Are these 64 lower-case hexadecimal digits?
bool is_sha256(std::string_view text);

}  // namespace ciuic::core
