// SPDX-License-Identifier: MIT
#include "index.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include <xxhash.h>

#include <ciuic/error.hpp>
#include <ciuic/view.hpp>

#include "checkpoint_format/files.h"
#include "checkpoint_format/strict_json.h"
#include "checkpoint_format/tensor_types.h"

namespace ciuic::plugins::sharded {
namespace {

using checkpoint::array_member;
using checkpoint::count_of;
using checkpoint::damaged;
using checkpoint::Described;
using checkpoint::json_string;
using checkpoint::member;
using checkpoint::printable;
using checkpoint::Span;
using checkpoint::string_member;
using checkpoint::unsigned_member;
using nlohmann::json;

// ---- the checksum at the end ----

constexpr std::string_view kTrailerHead = "\"xxh64\":\"";
constexpr std::string_view kTrailerTail = "\"}\n";
constexpr size_t kHexDigits = 16;
constexpr size_t kTrailerBytes = kTrailerHead.size() + kHexDigits + kTrailerTail.size();

bool has_trailer(std::string_view text) {
  if (text.size() < kTrailerBytes) {
    return false;
  }
  const std::string_view trailer = text.substr(text.size() - kTrailerBytes);
  return trailer.substr(0, kTrailerHead.size()) == kTrailerHead &&
         trailer.substr(trailer.size() - kTrailerTail.size()) == kTrailerTail;
}

void check_trailer(std::string_view text, const std::string& where) {
  const std::string_view covered = text.substr(0, text.size() - kTrailerBytes);
  const std::string_view stored = text.substr(covered.size() + kTrailerHead.size(), kHexDigits);
  if (stored != hex(checksum(covered))) {
    damaged(where, "its checksum is " + hex(checksum(covered)) + ", expected " + printable(stored));
  }
}

// ---- writing ----

std::string piece_text(const Piece& p) {
  return "{\"file\":" + std::to_string(p.file) + ",\"name\":" + json_string(p.name) +
         ",\"begin\":" + std::to_string(p.begin) + ",\"elements\":" + std::to_string(p.elements) +
         ",\"offset\":" + std::to_string(p.offset) + ",\"xxh64\":\"" + hex(p.xxh64) + "\"}";
}

std::string entry_text(const Entry& e) {
  std::string text = "{\"key\":" + json_string(e.key);
  if (e.tensor.is_blob) {
    text += ",\"blob\":true";
  }
  text += ",\"dtype\":\"" + checkpoint::type_name(e.tensor.dtype) +
          "\",\"shape\":" + json(e.tensor.shape).dump() + ",\"pieces\":[";
  for (size_t i = 0; i < e.pieces.size(); ++i) {
    text += (i == 0 ? "" : ",") + piece_text(e.pieces[i]);
  }
  return text + "]}";
}

std::string file_text(const ShardFile& f) {
  return "{\"name\":" + json_string(f.name) + ",\"bytes\":" + std::to_string(f.bytes) +
         ",\"header_xxh64\":\"" + hex(f.header_xxh64) + "\"}";
}

// ---- reading ----

uint64_t hex_member(const json& object, const char* name, const std::string& where) {
  const std::string text = string_member(object, name, where);
  if (text.size() != kHexDigits ||
      text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    damaged(where,
            std::string("\"") + name + "\" is \"" + printable(text) + "\", expected 16 hex digits");
  }
  return std::stoull(text, nullptr, 16);
}

ShardFile read_file(const json& object, const std::string& where) {
  ShardFile f{string_member(object, "name", where), unsigned_member(object, "bytes", where),
              hex_member(object, "header_xxh64", where)};
  if (!checkpoint::is_plain_name(f.name)) {
    damaged(where, "\"" + printable(f.name) + "\" is no name of a file in this folder");
  }
  return f;
}

Piece read_piece(const json& object, const Index& index, const Entry& entry,
                 const std::string& where) {
  Piece p;
  const uint64_t file = unsigned_member(object, "file", where);
  if (file >= index.files.size()) {
    damaged(where, "a piece in file number " + std::to_string(file) + " of " +
                       std::to_string(index.files.size()));
  }
  p.file = file;
  p.name = string_member(object, "name", where);
  p.begin = count_of(member(object, "begin", where), "begin", where);
  p.elements = count_of(member(object, "elements", where), "elements", where);
  p.offset = unsigned_member(object, "offset", where);
  p.xxh64 = hex_member(object, "xxh64", where);
  const int64_t total = entry.total();
  if (p.elements > total || p.begin > total - p.elements) {
    damaged(where, "elements [" + std::to_string(p.begin) + ", +" + std::to_string(p.elements) +
                       ") of " + std::to_string(total));
  }
  const uint64_t bytes =
      static_cast<uint64_t>(p.elements) * checkpoint::type_bytes(entry.tensor.dtype);
  const uint64_t file_bytes = index.files[p.file].bytes;
  if (bytes > file_bytes || p.offset > file_bytes - bytes) {
    damaged(where, std::to_string(bytes) + " bytes at offset " + std::to_string(p.offset) +
                       " of a file of " + std::to_string(file_bytes));
  }
  return p;
}

void check_tiling(const Entry& entry, const Index& index, int32_t code, const std::string& where) {
  std::vector<Span> spans;
  for (const Piece& p : entry.pieces) {
    spans.push_back({p.begin, p.elements, index.files[p.file].name});
  }
  if (const auto problem = checkpoint::tiling_problem(spans, entry.total())) {
    throw Error(code, where + printable(entry.key) + ": " + *problem);
  }
}

Entry read_entry(const json& object, const Index& index, const std::string& where, bool is_whole) {
  Entry e;
  e.key = string_member(object, "key", where);
  const std::string who = where + ": " + printable(e.key);
  const auto dtype = checkpoint::type_from_name(string_member(object, "dtype", who));
  if (!dtype) {
    damaged(who, "unknown dtype");
  }
  e.tensor.dtype = *dtype;
  const json& shape = array_member(object, "shape", who);
  if (shape.size() > checkpoint::kMaxDimensions) {
    damaged(who, "more than " + std::to_string(checkpoint::kMaxDimensions) + " dimensions");
  }
  for (const json& d : shape) {
    e.tensor.shape.push_back(count_of(d, "shape", who));
  }
  if (!checkpoint::shape_elements(e.tensor.shape, e.tensor.dtype)) {
    damaged(who, "the shape " + checkpoint::shape_text(e.tensor.shape) + " overflows 63 bits");
  }
  e.tensor.is_blob = object.contains("blob");
  if (e.tensor.is_blob &&
      (object["blob"] != true || !same(e.tensor.dtype, kU8) || e.tensor.shape.size() != 1)) {
    damaged(who, "a blob that is no list of bytes");
  }
  for (const json& piece : array_member(object, "pieces", who)) {
    e.pieces.push_back(read_piece(piece, index, e, who));
  }
  if (is_whole) {
    check_tiling(e, index, CIUIC_DATA_LOSS, where + ": ");
  }
  return e;
}

/// Throws UNIMPLEMENTED unless the text says that it is of this format and version.
void check_format(const json& index, const std::string& where) {
  if (!index.is_object() || !index.contains("format") || index["format"] != kFormat) {
    throw Error(CIUIC_UNIMPLEMENTED, where + " is no index of a sharded checkpoint");
  }
  if (!index.contains("version") || index["version"] != kVersion) {
    throw Error(CIUIC_UNIMPLEMENTED,
                where + ": version " +
                    (index.contains("version") ? printable(index["version"].dump()) : "missing") +
                    ", this plugin reads version " + std::to_string(kVersion));
  }
}

json parse_ours(std::string_view text, const std::string& where) {
  if (has_trailer(text)) {
    check_trailer(text, where);
    json parsed = checkpoint::parse_strict(text, where);
    check_format(parsed, where);
    return parsed;
  }
  // No checksum: either not ours, or ours and cut off.
  if (text.find(kFormat) == std::string_view::npos) {
    throw Error(CIUIC_UNIMPLEMENTED, where + " is no index of a sharded checkpoint");
  }
  damaged(where, "it does not end with its checksum; the file is cut off or damaged");
}

}  // namespace

uint64_t checksum(std::string_view bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

std::string hex(uint64_t value) {
  char text[kHexDigits + 1];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

int64_t Entry::total() const {
  return checkpoint::shape_elements(tensor.shape, tensor.dtype).value();
}

std::string to_text(const Index& index) {
  std::string text = "{\"format\":" + json_string(kFormat) +
                     ",\"version\":" + std::to_string(kVersion) +
                     ",\"step\":" + std::to_string(index.step) +
                     ",\"world\":" + std::to_string(index.world) + ",\n\"files\":[";
  for (size_t i = 0; i < index.files.size(); ++i) {
    text += (i == 0 ? "\n" : ",\n") + file_text(index.files[i]);
  }
  text += "\n],\n\"entries\":[";
  for (size_t i = 0; i < index.entries.size(); ++i) {
    text += (i == 0 ? "\n" : ",\n") + entry_text(index.entries[i]);
  }
  text += "\n],\n";
  const std::string sum = hex(checksum(text));
  return text.append(kTrailerHead).append(sum).append(kTrailerTail);
}

Index from_text(std::string_view text, const std::string& where, bool is_whole) {
  const json parsed = parse_ours(text, where);
  Index index;
  index.step = unsigned_member(parsed, "step", where);
  index.world = unsigned_member(parsed, "world", where);
  std::set<std::string> names;
  for (const json& file : array_member(parsed, "files", where)) {
    index.files.push_back(read_file(file, where));
    if (!names.insert(index.files.back().name).second) {
      damaged(where, "the file \"" + printable(index.files.back().name) + "\" is listed twice");
    }
  }
  if (is_whole && index.files.size() != index.world) {
    damaged(where, std::to_string(index.files.size()) + " files of " + std::to_string(index.world) +
                       " ranks");
  }
  std::set<std::string> keys;
  for (const json& entry : array_member(parsed, "entries", where)) {
    index.entries.push_back(read_entry(entry, index, where, is_whole));
    if (!keys.insert(index.entries.back().key).second) {
      damaged(where, "the key \"" + printable(index.entries.back().key) + "\" is listed twice");
    }
  }
  return index;
}

Index merge(std::vector<Index> parts) {
  Index whole;
  whole.step = parts.at(0).step;
  whole.world = parts.size();
  std::map<std::string, Entry> entries;
  for (Index& part : parts) {
    const size_t first_file = whole.files.size();
    std::move(part.files.begin(), part.files.end(), std::back_inserter(whole.files));
    for (Entry& e : part.entries) {
      auto [at, is_new] = entries.try_emplace(e.key, Entry{e.key, e.tensor, {}});
      Entry& joined = at->second;
      if (!is_new && (e.tensor.is_blob || joined.tensor.is_blob)) {
        throw Error(CIUIC_INVALID, "blob " + printable(e.key) + " was put twice");
      }
      if (!same(joined.tensor.dtype, e.tensor.dtype) || joined.tensor.shape != e.tensor.shape) {
        throw Error(CIUIC_INVALID,
                    printable(e.key) + ": ranks put it with different types or shapes");
      }
      for (Piece& p : e.pieces) {
        p.file += first_file;
        joined.pieces.push_back(std::move(p));
      }
    }
  }
  for (auto& [key, entry] : entries) {
    std::sort(entry.pieces.begin(), entry.pieces.end(),
              [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    check_tiling(entry, whole, CIUIC_INVALID, "");
    whole.entries.push_back(std::move(entry));
  }
  return whole;
}

std::string shard_name(int64_t rank, int64_t world) {
  char text[64];
  std::snprintf(text, sizeof(text), "shard-%05lld-of-%05lld.safetensors",
                static_cast<long long>(rank), static_cast<long long>(world));
  return text;
}

std::string sidecar_name(int64_t rank) {
  char text[32];
  std::snprintf(text, sizeof(text), "pieces-%05lld.json", static_cast<long long>(rank));
  return text;
}

bool is_shard_name(std::string_view name) {
  const auto is_like = [name](std::string_view head, std::string_view tail) {
    return name.size() > head.size() + tail.size() && name.substr(0, head.size()) == head &&
           name.substr(name.size() - tail.size()) == tail;
  };
  return is_like("shard-", ".safetensors") || is_like("pieces-", ".json");
}

}  // namespace ciuic::plugins::sharded
