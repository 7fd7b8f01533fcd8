// SPDX-License-Identifier: MIT
//
// The one exception type of the C++ layer. Authors throw it (or any std::exception); guard() in
// host.hpp turns it into a status made by the host, so nothing unwinds through the C boundary.
//
// Built with -fno-exceptions, a hook fails by report(Error(...)) and a return; what the layer itself
// would throw (a wrong shape, a service that is not there) then ends the process with its text.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
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

namespace detail {

/// The call from the host that this thread is in.
struct Frame {
  std::optional<Error> reported;
  Frame* outer;
};
inline thread_local Frame* innermost_frame = nullptr;  // trivial: pins no library

}  // namespace detail

/// Throws, or without exceptions ends the process.
[[noreturn]] inline void raise(const Error& error) {
#if defined(__cpp_exceptions)
  throw error;
#else
  std::fprintf(stderr, "ciuic plugin: %s\n", error.what());
  std::abort();
#endif
}

/// Makes the hook that this thread is in fail with `error` once it returns; the first report
/// counts. The way to fail without exceptions, and from where throwing is no good. Outside any
/// hook: as raise.
inline void report(const Error& error) {
  if (detail::innermost_frame == nullptr) {
    raise(error);
  }
  if (!detail::innermost_frame->reported) {
    detail::innermost_frame->reported.emplace(error);
  }
}

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
