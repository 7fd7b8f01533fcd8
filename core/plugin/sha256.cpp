// SPDX-License-Identifier: MIT
#include "core/plugin/sha256.h"

#include <algorithm>
#include <array>
#include <sodium.h>

namespace ciuic::core {

std::string sha256(std::span<const std::byte> bytes) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(bytes.data()),
                     bytes.size());
  std::array<char, 2 * crypto_hash_sha256_BYTES + 1> text;
  sodium_bin2hex(text.data(), text.size(), digest.data(), digest.size());
  return text.data();
}

std::string sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

bool is_sha256(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace ciuic::core
