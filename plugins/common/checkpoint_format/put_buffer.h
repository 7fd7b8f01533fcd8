// SPDX-License-Identifier: MIT
//
// What a save was asked to hold, and what this rank has put into it so far.
//
// Memory: a piece is copied unless its tensor is STABLE, and stays until the commit has written it.
// So a rank needs at most the bytes it puts, and nothing for STABLE tensors, which are read at the
// commit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/checkpoint.h>
#include <ciuic/error.hpp>

#include "checkpoint_format/host_bytes.h"

namespace ciuic::plugins::checkpoint {

/// A tensor, or a blob (then U8, one-dimensional), as the whole save knows it.
struct Described {
  bool is_blob = false;
  ciuic_dtype dtype{};
  std::vector<int64_t> shape;
};

/// A save request that owns its parts.
struct SaveRequest {
  /// Throws INVALID for keys that cannot be, or that stand twice.
  explicit SaveRequest(const ciuic_save_request& request);

  std::string path;
  uint64_t step;
  std::map<std::string, Described, std::less<>> entries;  // empty: unknown
  uint64_t bytes = 0;                                     // of all entries
  uint64_t fingerprint = 0;                               // of everything above
};

/// Elements [begin, begin + count) of a tensor, or a whole blob.
struct PutPiece {
  std::string key;
  Described tensor;
  int64_t begin = 0, count = 0;
  HostBytes bytes;
};

class PutBuffer final {
 public:
  explicit PutBuffer(const Host& host) : host_(host) {}

  /// A refusal is thrown here and, lest the caller overlook it, again by check.
  void put(std::string_view key, const ciuic_place& place, const ciuic_tensor& tensor,
           const ciuic_stream* stream);
  void put_blob(std::string_view key, std::string_view bytes);
  /// Remembers a refusal made elsewhere, and throws it.
  [[noreturn]] void refuse(Error error);
  void check() const;

  [[nodiscard]] std::vector<PutPiece>& pieces() noexcept { return pieces_; }
  [[nodiscard]] uint64_t bytes() const noexcept;

 private:
  Host host_;
  std::vector<PutPiece> pieces_;
  std::optional<Error> refused_;
};

/// A range of a tensor, and who wrote it.
struct Span {
  int64_t begin, count;
  std::string owner;  // for messages
};
/// What is wrong with spans that should cover [0, total), each element once. Sorts them.
[[nodiscard]] std::optional<std::string> tiling_problem(std::vector<Span>& spans, int64_t total);

/// Throws INVALID unless exactly the announced entries are there, as announced. Nothing announced:
/// anything goes.
void check_announced(const SaveRequest& request,
                     const std::map<std::string, Described, std::less<>>& got);

}  // namespace ciuic::plugins::checkpoint
