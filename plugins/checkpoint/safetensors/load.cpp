// SPDX-License-Identifier: MIT
#include "load.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include <ciuic/error.hpp>

#include "checkpoint_format/flat_range.h"
#include "checkpoint_format/host_bytes.h"
#include "checkpoint_format/strict_json.h"
#include "checkpoint_format/tensor_types.h"

namespace ciuic::plugins::safetensors {
namespace {

using checkpoint::damaged;
using checkpoint::Files;
using checkpoint::join;
using checkpoint::Listed;
using checkpoint::printable;
using checkpoint::TensorInfo;
using nlohmann::json;

constexpr const char* kSplitIndexName = "model.safetensors.index.json";
constexpr uint64_t kMaxTextBytes = checkpoint::kMaxHeaderBytes;
constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

bool has(const std::vector<Listed>& listing, std::string_view name) {
  return std::any_of(listing.begin(), listing.end(),
                     [name](const Listed& l) { return l.name == name; });
}

}  // namespace

bool means_file(std::string_view path) {
  constexpr std::string_view kEnding = ".safetensors";
  return path.size() > kEnding.size() && path.substr(path.size() - kEnding.size()) == kEnding;
}

Load::Load(const Host& host, std::string path)
    : Archive(host), files_(host), path_(std::move(path)) {
  if (means_file(path_)) {
    open_file();
  } else {
    open_folder();
  }
  list_entries();
}

void Load::open_file() {
  std::vector<Listed> listing;
  switch (files_.look(path_, listing)) {
    case Files::Found::Nothing:
      throw Error(CIUIC_NOT_FOUND, path_ + " does not exist");
    case Files::Found::Folder:
      throw Error(CIUIC_UNIMPLEMENTED, path_ + " is a folder, not a safetensors file");
    case Files::Found::File:
      break;
  }
  const auto metadata = add_source(path_, "");
  if (!metadata.empty()) {
    blobs_.emplace(kMetadataKey, json(metadata).dump());
  }
}

void Load::open_folder() {
  std::vector<Listed> listing;
  switch (files_.look(path_, listing)) {
    case Files::Found::Nothing:
      throw Error(CIUIC_NOT_FOUND, path_ + " does not exist");
    case Files::Found::File:
      throw Error(CIUIC_UNIMPLEMENTED, path_ + " is no safetensors file by its name");
    case Files::Found::Folder:
      break;
  }
  const bool is_one_file = has(listing, kModelName);
  if (!has(listing, kConfigName) || (!is_one_file && !has(listing, kSplitIndexName))) {
    throw Error(CIUIC_UNIMPLEMENTED, path_ + " is no Hugging Face folder: it needs " + kConfigName +
                                         " and " + kModelName);
  }
  const std::string config_path = join(path_, kConfigName);
  std::string config = files_.read_all(config_path, kMaxTextBytes);
  if (!json::accept(config)) {
    damaged(config_path, "no valid JSON");
  }
  blobs_.emplace(kConfigName, std::move(config));
  if (is_one_file) {
    (void)add_source(join(path_, kModelName), kValuePrefix);
  } else {
    open_split_model(join(path_, kSplitIndexName));
  }
}

/// {"weight_map": {tensor: file}}: each tensor lies where the map says, and nothing else lies
/// there.
void Load::open_split_model(const std::string& index_path) {
  const json index =
      checkpoint::parse_strict(files_.read_all(index_path, kMaxTextBytes), index_path);
  const json& map = checkpoint::member(index, "weight_map", index_path);
  if (!map.is_object()) {
    damaged(index_path, "\"weight_map\" is no object");
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : map.items()) {
    if (!file.is_string() || !checkpoint::is_plain_name(file.get_ref<const std::string&>())) {
      damaged(index_path, "\"" + printable(tensor) + "\" lies in " + printable(file.dump()) +
                              ", which is no name of a file in this folder");
    }
    names.insert(file.get<std::string>());
  }
  for (const std::string& name : names) {
    const std::string path = join(path_, name);
    try {
      (void)add_source(path, kValuePrefix);
    } catch (const Error& e) {
      if (e.code() == CIUIC_NOT_FOUND) {
        damaged(path, "missing, but " + std::string(kSplitIndexName) + " names it");
      }
      throw;
    }
  }
  for (const auto& [tensor, file] : map.items()) {
    const auto found = tensors_.find(std::string(kValuePrefix) + tensor);
    if (found == tensors_.end() ||
        sources_[found->second.source].path != join(path_, file.get<std::string>())) {
      damaged(index_path, "\"" + printable(tensor) + "\" is not in " + printable(file.dump()));
    }
  }
  if (map.size() != tensors_.size()) {
    damaged(index_path, "names " + std::to_string(map.size()) + " tensors, the files hold " +
                            std::to_string(tensors_.size()));
  }
}

std::map<std::string, std::string> Load::add_source(const std::string& path,
                                                    std::string_view prefix) {
  const checkpoint::File file = files_.open(path);
  checkpoint::SafetensorsHeader header = checkpoint::read_safetensors_header(file);
  for (TensorInfo& t : header.tensors) {
    std::string key = std::string(prefix) + t.name;
    const auto [at, is_new] =
        tensors_.try_emplace(std::move(key), Stored{std::move(t), sources_.size()});
    if (!is_new) {
      damaged(path, "tensor \"" + printable(at->first) + "\" is in another file too");
    }
  }
  sources_.push_back({path, file.size(), header.data_offset});
  return std::move(header.metadata);
}

void Load::list_entries() {
  for (const auto& [key, bytes] : blobs_) {
    ciuic_entry c{};
    c.struct_size = sizeof(c);
    c.flags = CIUIC_ENTRY_BLOB;
    c.key = to_str(key);
    c.bytes = bytes.size();
    listed_.push_back(c);
  }
  for (const auto& [key, stored] : tensors_) {
    ciuic_entry c{};
    c.struct_size = sizeof(c);
    c.key = to_str(key);
    c.dtype = stored.info.dtype;
    c.ndim = static_cast<int32_t>(stored.info.shape.size());
    c.global_shape = stored.info.shape.data();
    c.bytes = stored.info.end - stored.info.begin;
    listed_.push_back(c);
  }
}

const Load::Stored& Load::find(std::string_view key) const {
  const auto found = tensors_.find(key);
  if (found == tensors_.end()) {
    if (blobs_.find(key) != blobs_.end()) {
      throw Error(CIUIC_INVALID, printable(key) + " is a blob");
    }
    throw Error(CIUIC_NOT_FOUND, path_ + " has no " + printable(key));
  }
  return found->second;
}

const checkpoint::File& Load::source(size_t number) {
  if (!open_.is_open() || open_number_ != number) {
    const Source& s = sources_[number];
    try {
      open_ = files_.open(s.path);
    } catch (const Error& e) {
      if (e.code() == CIUIC_NOT_FOUND) {  // which would mean: no such key
        damaged(s.path, "missing");
      }
      throw;
    }
    open_number_ = number;
    if (const uint64_t bytes = open_.size(); bytes != s.bytes) {
      damaged(s.path, "has " + std::to_string(bytes) + " bytes, had " + std::to_string(s.bytes) +
                          " when opened");
    }
  }
  return open_;
}

void Load::verify(std::string_view key) {
  open_ = {};  // look at the files anew
  if (!key.empty()) {
    if (blobs_.find(key) == blobs_.end()) {
      verify_data(find(key));
    }
    return;
  }
  for (size_t n = 0; n < sources_.size(); ++n) {
    (void)checkpoint::read_safetensors_header(source(n));
  }
  for (const auto& [unused, stored] : tensors_) {
    verify_data(stored);
  }
}

void Load::verify_data(const Stored& stored) {
  const uint64_t start = sources_[stored.source].data_offset;
  std::string chunk;
  for (uint64_t at = stored.info.begin; at < stored.info.end; at += chunk.size()) {
    chunk.resize(std::min(stored.info.end - at, kChunkBytes));
    source(stored.source).read(start + at, chunk.data(), chunk.size());
  }
}

Work Load::get(std::string_view key, const ciuic_place& place, const ciuic_tensor& into,
               const ciuic_stream* stream) {
  const Stored& stored = find(key);
  const TensorInfo& info = stored.info;
  if (!same(info.dtype, into.t.dtype)) {
    throw Error(CIUIC_INVALID, printable(key) + ": got a tensor of " + dtype_name(into.t.dtype) +
                                   ", stored is " + dtype_name(info.dtype));
  }
  const checkpoint::FlatRange range = checkpoint::flat_range(key, place, into);
  if (range.shape != info.shape) {
    throw Error(CIUIC_INVALID, printable(key) + ": got the shape " +
                                   checkpoint::shape_text(range.shape) + ", stored is " +
                                   checkpoint::shape_text(info.shape));
  }
  const uint64_t element = checkpoint::type_bytes(info.dtype);
  const uint64_t offset = sources_[stored.source].data_offset + info.begin +
                          static_cast<uint64_t>(range.begin) * element;
  checkpoint::fill_tensor(host(), into, stream, [&](char* bytes) {
    source(stored.source).read(offset, bytes, static_cast<uint64_t>(range.count) * element);
  });
  return {};
}

std::string_view Load::get_blob(std::string_view key) {
  const auto found = blobs_.find(key);
  if (found == blobs_.end()) {
    if (tensors_.find(key) != tensors_.end()) {
      throw Error(CIUIC_INVALID, printable(key) + " is a tensor");
    }
    throw Error(CIUIC_NOT_FOUND, path_ + " has no " + printable(key));
  }
  return found->second;
}

}  // namespace ciuic::plugins::safetensors
