// SPDX-License-Identifier: MIT
//
// index.json: which elements of which tensor lie where. docs/checkpoint_format.md is its
// specification.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint_format/put_buffer.h"

namespace ciuic::plugins::sharded {

inline constexpr const char* kFormat = "ciuic-sharded";
inline constexpr uint64_t kVersion = 1;
inline constexpr const char* kIndexName = "index.json";
inline constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 30;

/// Elements [begin, begin + elements) of a tensor: a tensor of its own in a shard.
struct Piece {
  size_t file = 0;  // number in Index::files
  std::string name;
  int64_t begin = 0, elements = 0;
  uint64_t offset = 0;  // bytes from the start of the file
  uint64_t xxh64 = 0;
};

struct Entry {
  std::string key;
  checkpoint::Described tensor;
  std::vector<Piece> pieces;  // by begin

  [[nodiscard]] int64_t total() const;
};

struct ShardFile {
  std::string name;
  uint64_t bytes = 0;
  uint64_t header_xxh64 = 0;  // of everything before the data
};

/// A checkpoint, or, in a sidecar, the part of it that one rank wrote.
struct Index {
  uint64_t step = 0;
  uint64_t world = 0;
  std::vector<ShardFile> files;
  std::vector<Entry> entries;
};

/// Ends with a checksum of itself.
[[nodiscard]] std::string to_text(const Index& index);

/// Throws UNIMPLEMENTED for another format or version, DATA_LOSS for a damaged one. Every number is
/// checked against the others; is_whole: and every element of every tensor has its place.
[[nodiscard]] Index from_text(std::string_view text, const std::string& where, bool is_whole);

/// Joins what each rank wrote, in rank order. Throws INVALID when elements are missing or were put
/// twice.
[[nodiscard]] Index merge(std::vector<Index> parts);

[[nodiscard]] std::string shard_name(int64_t rank, int64_t world);
[[nodiscard]] std::string sidecar_name(int64_t rank);
/// Is a file of this name a shard or a sidecar?
[[nodiscard]] bool is_shard_name(std::string_view name);

[[nodiscard]] uint64_t checksum(std::string_view bytes);
[[nodiscard]] std::string hex(uint64_t checksum);

}  // namespace ciuic::plugins::sharded
