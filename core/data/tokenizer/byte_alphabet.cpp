// SPDX-License-Identifier: MIT
#include "core/data/tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

namespace ciuic::core {
namespace {

constexpr uint16_t kFirstShifted = 256;
constexpr uint16_t kCharacters = 324;  // 188 bytes stand for themselves, 68 are shifted

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<uint16_t, 256> characters() {
  std::array<uint16_t, 256> table{};
  uint16_t next = kFirstShifted;
  for (unsigned byte = 0; byte < 256; ++byte) {
    table[byte] = stands_for_itself(byte) ? static_cast<uint16_t>(byte) : next++;
  }
  return table;
}

constexpr std::array<int16_t, kCharacters> bytes() {
  std::array<int16_t, kCharacters> table{};
  for (int16_t& b : table) {
    b = -1;
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    table[characters()[byte]] = static_cast<int16_t>(byte);
  }
  return table;
}

constexpr std::array<uint16_t, 256> kCharacterOf = characters();
constexpr std::array<int16_t, kCharacters> kByteOf = bytes();

}  // namespace

std::optional<std::string> bytes_of(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {  // every character of the alphabet has one byte or two
      if (c < 0xC2 || c > 0xC5 || i + 1 == text.size()) {
        return std::nullopt;
      }
      c = ((c & 0x1Fu) << 6) | (static_cast<unsigned char>(text[++i]) & 0x3Fu);
    }
    if (c >= kCharacters || kByteOf[c] < 0) {
      return std::nullopt;
    }
    out += static_cast<char>(kByteOf[c]);
  }
  return out;
}

std::string written_bytes(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    const uint16_t c = kCharacterOf[static_cast<unsigned char>(byte)];
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      out += static_cast<char>(0xC0 | (c >> 6));
      out += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return out;
}

}  // namespace ciuic::core
