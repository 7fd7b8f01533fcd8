// SPDX-License-Identifier: MIT
#include "shard.h"

#include <algorithm>
#include <map>
#include <set>

#include "checkpoint_format/safetensors_header.h"
#include "checkpoint_format/strict_json.h"
#include "checkpoint_format/tensor_types.h"

namespace ciuic::plugins::sharded {
namespace {

using checkpoint::damaged;
using checkpoint::File;
using checkpoint::printable;
using checkpoint::PutPiece;
using checkpoint::SafetensorsHeader;
using checkpoint::TensorInfo;

/// The key, where the piece is the whole tensor, else "key[begin:end]"; with a ' where that is
/// taken.
std::string piece_name(const PutPiece& p, int64_t total, std::set<std::string>& taken) {
  std::string name = p.key;
  if (p.count != total) {
    name += "[" + std::to_string(p.begin) + ":" + std::to_string(p.begin + p.count) + "]";
  }
  while (name == "__metadata__" || !taken.insert(name).second) {
    name += "'";
  }
  return name;
}

Entry& entry_of(Index& index, std::map<std::string, size_t>& numbers, const PutPiece& p) {
  const auto [at, is_new] = numbers.try_emplace(p.key, index.entries.size());
  if (is_new) {
    index.entries.push_back({p.key, p.tensor, {}});
  }
  Entry& entry = index.entries[at->second];
  if (!is_new && (entry.tensor.is_blob || p.tensor.is_blob)) {
    throw Error(CIUIC_INVALID, "blob " + printable(p.key) + " was put twice");
  }
  if (!same(entry.tensor.dtype, p.tensor.dtype) || entry.tensor.shape != p.tensor.shape) {
    throw Error(CIUIC_INVALID, printable(p.key) + " was put with two types or shapes");
  }
  return entry;
}

std::map<std::string, std::string> metadata_of(const ShardIdentity& who) {
  return {{"format", kFormat},
          {"step", std::to_string(who.step)},
          {"rank", std::to_string(who.rank)},
          {"world", std::to_string(who.world)}};
}

}  // namespace

Index write_shard(const checkpoint::Files& files, const std::string& folder,
                  const ShardIdentity& who, std::vector<PutPiece>& pieces) {
  Index index;
  index.step = who.step;
  index.world = static_cast<uint64_t>(who.world);
  // Wide elements first: then every tensor lies aligned to its own type.
  std::stable_sort(pieces.begin(), pieces.end(), [](const PutPiece& a, const PutPiece& b) {
    return checkpoint::type_bytes(a.tensor.dtype) > checkpoint::type_bytes(b.tensor.dtype);
  });
  std::map<std::string, size_t> numbers;
  std::set<std::string> taken;
  std::vector<TensorInfo> infos;
  for (const PutPiece& p : pieces) {
    Entry& entry = entry_of(index, numbers, p);
    if (p.count == 0) {
      continue;  // an empty tensor or blob: an entry without pieces
    }
    const bool is_all = p.count == entry.total();
    infos.push_back({piece_name(p, entry.total(), taken), p.tensor.dtype,
                     is_all ? p.tensor.shape : std::vector<int64_t>{p.count}, 0, 0});
    entry.pieces.push_back(
        {0, infos.back().name, p.begin, p.count, 0, checksum({p.bytes.data(), p.bytes.size()})});
  }
  const std::string prefix = checkpoint::make_safetensors_prefix(infos, metadata_of(who));

  const File file = files.create(checkpoint::join(folder, shard_name(who.rank, who.world)));
  checkpoint::SequentialWriter writer(file, 0);
  writer.append(prefix.data(), prefix.size());
  uint64_t offset = prefix.size();
  std::map<std::string, size_t> written;  // pieces per key
  for (PutPiece& p : pieces) {
    if (p.count == 0) {
      continue;
    }
    index.entries[numbers.at(p.key)].pieces[written[p.key]++].offset = offset;
    writer.append(p.bytes.data(), p.bytes.size());
    offset += p.bytes.size();
    p.bytes = {};
  }
  writer.flush();
  file.sync();
  index.files.push_back({shard_name(who.rank, who.world), offset, checksum(prefix)});
  return index;
}

void verify_shard_header(const File& file, const Index& index, size_t number) {
  const ShardFile& expected = index.files[number];
  const std::string& where = file.path();
  const uint64_t bytes = file.size();
  if (bytes != expected.bytes) {
    damaged(where, "has " + std::to_string(bytes) + " bytes, the index says " +
                       std::to_string(expected.bytes));
  }
  const std::string prefix = checkpoint::read_safetensors_prefix(file, bytes);
  const SafetensorsHeader header = checkpoint::parse_safetensors_prefix(prefix, bytes, where);
  const ShardIdentity who{index.step, static_cast<int64_t>(number),
                          static_cast<int64_t>(index.world)};
  for (const auto& [name, value] : metadata_of(who)) {
    const auto found = header.metadata.find(name);
    const std::string got = found == header.metadata.end() ? "nothing" : printable(found->second);
    if (got != value) {
      damaged(where, "its " + name + " is " + got + ", the index says " + value);
    }
  }
  if (checksum(prefix) != expected.header_xxh64) {
    damaged(where, "the header's checksum is " + hex(checksum(prefix)) + ", the index says " +
                       hex(expected.header_xxh64));
  }
  std::map<std::string, const TensorInfo*> tensors;
  for (const TensorInfo& t : header.tensors) {
    tensors.emplace(t.name, &t);
  }
  size_t pieces = 0;
  for (const Entry& e : index.entries) {
    for (const Piece& p : e.pieces) {
      if (p.file != number) {
        continue;
      }
      ++pieces;
      const auto found = tensors.find(p.name);
      if (found == tensors.end()) {
        damaged(where, "has no tensor \"" + printable(p.name) + "\", which the index lists");
      }
      const TensorInfo& t = *found->second;
      const uint64_t needed =
          static_cast<uint64_t>(p.elements) * checkpoint::type_bytes(e.tensor.dtype);
      if (!same(t.dtype, e.tensor.dtype) || header.data_offset + t.begin != p.offset ||
          t.end - t.begin != needed) {
        damaged(where, "tensor \"" + printable(p.name) + "\" is not what the index says");
      }
    }
  }
  if (pieces != tensors.size()) {
    damaged(where, "has " + std::to_string(tensors.size()) + " tensors, the index lists " +
                       std::to_string(pieces));
  }
}

}  // namespace ciuic::plugins::sharded
