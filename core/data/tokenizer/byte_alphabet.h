// SPDX-License-Identifier: MIT
//
// The 256 printable characters by which byte-level tokenizers write bytes in JSON (GPT-2,
// encoder.py, bytes_to_unicode): a byte that is a printable Latin-1 character other than space
// stands for itself, the others count up from U+0100.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ciuic::core {

/// The bytes that `text` writes; nothing if a character is not of the alphabet.
std::optional<std::string> bytes_of(std::string_view text);
/// How `bytes` are written.
std::string written_bytes(std::string_view bytes);

}  // namespace ciuic::core
