// SPDX-License-Identifier: MIT
#include "load.h"

#include <algorithm>
#include <set>

#include <xxhash.h>

#include <ciuic/error.hpp>

#include "checkpoint_format/flat_range.h"
#include "checkpoint_format/host_bytes.h"
#include "checkpoint_format/strict_json.h"
#include "checkpoint_format/tensor_types.h"
#include "publish.h"
#include "shard.h"

namespace ciuic::plugins::sharded {
namespace {

using checkpoint::damaged;
using checkpoint::Files;
using checkpoint::join;
using checkpoint::Listed;
using checkpoint::printable;

constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

bool has_shards(const std::vector<Listed>& listing) {
  return std::any_of(listing.begin(), listing.end(),
                     [](const Listed& l) { return is_shard_name(l.name); });
}

[[noreturn]] void incomplete(const std::string& path) {
  throw Error(CIUIC_DATA_LOSS, path + " is incomplete: there are shards but no " + kIndexName +
                                   "; a save was interrupted, use an older checkpoint");
}

/// What lies at the path. Throws NOT_FOUND, UNIMPLEMENTED or DATA_LOSS as open should.
std::vector<Listed> list_checkpoint(const Files& files, const std::string& path) {
  std::vector<Listed> listing;
  switch (files.look(path, listing)) {
    case Files::Found::File:
      throw Error(CIUIC_UNIMPLEMENTED, path + " is a file, a sharded checkpoint is a folder");
    case Files::Found::Folder:
      break;
    case Files::Found::Nothing:
      if (files.look(checkpoint::partial_of(path), listing) == Files::Found::Folder &&
          has_shards(listing)) {
        incomplete(checkpoint::partial_of(path));
      }
      throw Error(CIUIC_NOT_FOUND, path + " does not exist");
  }
  const bool has_index = std::any_of(listing.begin(), listing.end(),
                                     [](const Listed& l) { return l.name == kIndexName; });
  if (!has_index) {
    if (has_shards(listing)) {
      incomplete(path);
    }
    throw Error(CIUIC_UNIMPLEMENTED, path + " holds no sharded checkpoint");
  }
  return listing;
}

Index read_index(const Files& files, const std::string& path, const std::vector<Listed>& listing) {
  const std::string where = join(path, kIndexName);
  const std::string text = files.read_all(where, kMaxIndexBytes);
  try {
    return from_text(text, where, true);
  } catch (const Error& e) {
    // With shards beside it, an index that does not even name the format is ours and damaged.
    if (e.code() == CIUIC_UNIMPLEMENTED && text.find(kFormat) == std::string::npos &&
        has_shards(listing)) {
      damaged(where, "this is no index, but there are shards beside it");
    }
    throw;
  }
}

}  // namespace

Load::Load(const Host& host, std::string path)
    : Archive(host), files_(host), path_(std::move(path)) {
  const std::vector<Listed> listing = list_checkpoint(files_, path_);
  index_ = read_index(files_, path_, listing);
  check_files(listing);
  list_entries();
}

void Load::check_files(const std::vector<Listed>& listing) const {
  std::map<std::string, uint64_t> found;
  for (const Listed& l : listing) {
    found.emplace(l.name, l.bytes);
  }
  for (const ShardFile& f : index_.files) {
    const auto at = found.find(f.name);
    if (at == found.end()) {
      damaged(join(path_, f.name), "missing");
    }
    if (at->second != f.bytes) {
      damaged(join(path_, f.name), "has " + std::to_string(at->second) + " bytes, the index says " +
                                       std::to_string(f.bytes));
    }
  }
}

void Load::list_entries() {
  for (const Entry& e : index_.entries) {
    numbers_.emplace(e.key, listed_.size());
    ciuic_entry c{};
    c.struct_size = sizeof(c);
    c.flags = e.tensor.is_blob ? CIUIC_ENTRY_BLOB : 0;
    c.key = to_str(e.key);
    c.bytes = static_cast<uint64_t>(e.total()) * checkpoint::type_bytes(e.tensor.dtype);
    if (!e.tensor.is_blob) {
      c.dtype = e.tensor.dtype;
      c.ndim = static_cast<int32_t>(e.tensor.shape.size());
      c.global_shape = e.tensor.shape.data();
    }
    listed_.push_back(c);
  }
}

size_t Load::find(std::string_view key) const {
  const auto found = numbers_.find(key);
  if (found == numbers_.end()) {
    throw Error(CIUIC_NOT_FOUND, path_ + " has no " + printable(key));
  }
  return found->second;
}

const checkpoint::File& Load::shard(size_t number) {
  if (!open_.is_open() || open_number_ != number) {
    const std::string path = join(path_, index_.files[number].name);
    try {
      open_ = files_.open(path);
    } catch (const Error& e) {
      if (e.code() == CIUIC_NOT_FOUND) {  // which would mean: no such key
        damaged(path, "missing");
      }
      throw;
    }
    open_number_ = number;
  }
  return open_;
}

void Load::verify(std::string_view key) {
  std::set<size_t> numbers;
  const size_t first = key.empty() ? 0 : find(key);
  const size_t last = key.empty() ? index_.entries.size() : first + 1;
  for (size_t i = first; i < last; ++i) {
    for (const Piece& p : index_.entries[i].pieces) {
      numbers.insert(p.file);
    }
  }
  for (size_t n = 0; n < index_.files.size(); ++n) {
    if (key.empty() || numbers.count(n) != 0) {
      verify_shard_header(shard(n), index_, n);
    }
  }
  for (size_t i = first; i < last; ++i) {
    for (const Piece& p : index_.entries[i].pieces) {
      verify_piece(index_.entries[i], p);
    }
  }
}

Work Load::get(std::string_view key, const ciuic_place& place, const ciuic_tensor& into,
               const ciuic_stream* stream) {
  const size_t number = find(key);
  const checkpoint::Described& stored = index_.entries[number].tensor;
  if (stored.is_blob) {
    throw Error(CIUIC_INVALID, printable(key) + " is a blob");
  }
  if (!same(stored.dtype, into.t.dtype)) {
    throw Error(CIUIC_INVALID, printable(key) + ": got a tensor of " + dtype_name(into.t.dtype) +
                                   ", stored is " + dtype_name(stored.dtype));
  }
  const checkpoint::FlatRange range = checkpoint::flat_range(key, place, into);
  if (range.shape != stored.shape) {
    throw Error(CIUIC_INVALID, printable(key) + ": got the shape " +
                                   checkpoint::shape_text(range.shape) + ", stored is " +
                                   checkpoint::shape_text(stored.shape));
  }
  checkpoint::fill_tensor(host(), into, stream, [&](char* bytes) {
    read_range(number, range.begin, range.count, bytes);
  });
  return {};
}

std::string_view Load::get_blob(std::string_view key) {
  const size_t number = find(key);
  const Entry& entry = index_.entries[number];
  if (!entry.tensor.is_blob) {
    throw Error(CIUIC_INVALID, printable(key) + " is a tensor");
  }
  const auto [at, is_new] = blobs_.try_emplace(entry.key);
  if (is_new) {
    std::string bytes(static_cast<size_t>(entry.total()), '\0');
    try {
      read_range(number, 0, entry.total(), bytes.data());
    } catch (...) {
      blobs_.erase(at);
      throw;
    }
    at->second = std::move(bytes);
  }
  return at->second;
}

/// Pieces tile the tensor, by begin: from the one that holds `begin` on.
void Load::read_range(size_t number, int64_t begin, int64_t count, char* into) {
  const Entry& entry = index_.entries[number];
  const auto element = static_cast<int64_t>(checkpoint::type_bytes(entry.tensor.dtype));
  const int64_t end = begin + count;
  auto piece = std::partition_point(entry.pieces.begin(), entry.pieces.end(),
                                    [&](const Piece& p) { return p.begin + p.elements <= begin; });
  for (; piece != entry.pieces.end() && piece->begin < end; ++piece) {
    const int64_t from = std::max(begin, piece->begin);
    const int64_t to = std::min(end, piece->begin + piece->elements);
    read_piece(entry, *piece, from, to - from, into + (from - begin) * element);
  }
}

void Load::read_piece(const Entry& entry, const Piece& piece, int64_t begin, int64_t count,
                      char* into) {
  const uint64_t element = checkpoint::type_bytes(entry.tensor.dtype);
  const bool is_whole = count == piece.elements;
  if (!is_whole && checked_.count(&piece) == 0) {
    verify_piece(entry, piece);
  }
  const auto bytes = static_cast<size_t>(static_cast<uint64_t>(count) * element);
  const uint64_t skipped = static_cast<uint64_t>(begin - piece.begin) * element;
  shard(piece.file).read(piece.offset + skipped, into, bytes);
  if (is_whole) {
    compare(entry, piece, checksum({into, bytes}));
  }
}

void Load::verify_piece(const Entry& entry, const Piece& piece) {
  const uint64_t bytes =
      static_cast<uint64_t>(piece.elements) * checkpoint::type_bytes(entry.tensor.dtype);
  std::string chunk(std::min(bytes, kChunkBytes), '\0');
  XXH64_state_t state;
  XXH64_reset(&state, 0);
  for (uint64_t at = 0; at < bytes; at += chunk.size()) {
    chunk.resize(std::min(bytes - at, kChunkBytes));
    shard(piece.file).read(piece.offset + at, chunk.data(), chunk.size());
    XXH64_update(&state, chunk.data(), chunk.size());
  }
  compare(entry, piece, XXH64_digest(&state));
  checked_.insert(&piece);
}

void Load::compare(const Entry& entry, const Piece& piece, uint64_t got) const {
  if (got != piece.xxh64) {
    damaged(join(path_, index_.files[piece.file].name),
            printable(entry.key) + ", elements [" + std::to_string(piece.begin) + ", +" +
                std::to_string(piece.elements) + "): the checksum is " + hex(got) + ", expected " +
                hex(piece.xxh64));
  }
}

}  // namespace ciuic::plugins::sharded
