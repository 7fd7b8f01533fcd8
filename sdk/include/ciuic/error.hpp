// SPDX-License-Identifier: MIT
//
// The one exception type of the C++ layer. Authors throw it (or any std::exception); the
// trampolines turn it into a status made by the host, so nothing of ours unwinds through the C
// boundary.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include <ciuic/abi/types.h>

namespace ciuic {

/// A failure with one of the CIUIC_ status codes. `peer` is the global rank that is to blame, or
/// -1. Message: who, what, got, expected, remedy.
class Error : public std::runtime_error {
 public:
  Error(int32_t code, const std::string& message, int32_t peer = -1, uint32_t flags = 0)
      : std::runtime_error(message), code_(code), peer_(peer), flags_(flags) {}

  [[nodiscard]] int32_t code() const noexcept { return code_; }
  [[nodiscard]] int32_t peer() const noexcept { return peer_; }
  [[nodiscard]] uint32_t flags() const noexcept { return flags_; }

 private:
  int32_t code_;
  int32_t peer_;
  uint32_t flags_;
};

/// The name of a CIUIC_ code, for messages.
inline const char* code_name(int32_t code) noexcept {
  switch (code) {
    case CIUIC_OK:
      return "ok";
    case CIUIC_CANCELLED:
      return "cancelled";
    case CIUIC_INVALID:
      return "invalid";
    case CIUIC_DEADLINE:
      return "deadline exceeded";
    case CIUIC_NOT_FOUND:
      return "not found";
    case CIUIC_EXISTS:
      return "exists already";
    case CIUIC_PERMISSION:
      return "permission denied";
    case CIUIC_EXHAUSTED:
      return "out of memory or space";
    case CIUIC_PRECONDITION:
      return "precondition not met";
    case CIUIC_ABORTED:
      return "aborted";
    case CIUIC_UNIMPLEMENTED:
      return "not supported";
    case CIUIC_INTERNAL:
      return "internal error";
    case CIUIC_UNAVAILABLE:
      return "unavailable";
    case CIUIC_DATA_LOSS:
      return "data loss";
    default:
      return "unknown status";
  }
}

}  // namespace ciuic
