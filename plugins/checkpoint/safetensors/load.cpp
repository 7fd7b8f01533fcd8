// SPDX-License-Identifier: MIT
#include "load.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <set>

#include <nlohmann/json.hpp>

#include <ciuic/error.hpp>

#include "checkpoint_format/flat_range.h"
#include "checkpoint_format/host_bytes.h"
#include "checkpoint_format/strict_json.h"
#include "checkpoint_format/tensor_types.h"
#include "fp8_blocks.h"
#include "number_formats.h"

namespace ciuic::plugins::safetensors {
namespace {

using checkpoint::damaged;
using checkpoint::Files;
using checkpoint::join;
using checkpoint::Listed;
using checkpoint::printable;
using checkpoint::TensorInfo;
using nlohmann::json;

constexpr uint64_t kMaxTextBytes = checkpoint::kMaxHeaderBytes;
constexpr uint64_t kChunkBytes = uint64_t{4} << 20;
constexpr int64_t kCodesAtOnce = int64_t{1} << 18;
constexpr size_t kProblemsShown = 100;
constexpr std::string_view kScale = kScaleEnding;

bool ends_with(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

Matrix matrix_of(const TensorInfo& info) { return {info.shape[0], info.shape[1]}; }

/// The name of a tensor as the file has it.
std::string name_of(std::string_view key) { return printable(key.substr(kValuePrefix.size())); }

/// What is wrong with these as the scales of this FP8 weight.
std::optional<std::string> scale_problem(const TensorInfo& weight, const TensorInfo* scales) {
  const std::string name = printable(weight.name);
  if (weight.shape.size() != 2) {
    return name + ": an FP8 weight of shape " + checkpoint::shape_text(weight.shape) +
           ", expected a matrix";
  }
  if (scales == nullptr) {
    return name + ": an FP8 weight without its scales " + name + kScaleEnding;
  }
  const std::vector<int64_t> expected{matrix_of(weight).block_rows(),
                                      matrix_of(weight).block_columns()};
  if (!same(scales->dtype, kF32) || scales->shape != expected) {
    return name + kScaleEnding + ": got " + checkpoint::type_name(scales->dtype) + " " +
           checkpoint::shape_text(scales->shape) + ", expected F32 " +
           checkpoint::shape_text(expected) + " for blocks of 128 x 128 of " +
           checkpoint::shape_text(weight.shape);
  }
  return std::nullopt;
}

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
  blobs_.emplace(kConfigName, plain_config(std::move(config), config_path));
  if (is_one_file) {
    (void)add_source(join(path_, kModelName), kValuePrefix);
  } else {
    open_split_model(join(path_, kSplitIndexName));
  }
  pair_scales();
}

/// {"weight_map": {tensor: file}}: each tensor lies where the map says, and nothing else lies
/// there.
void Load::open_split_model(const std::string& index_path) {
  const WeightMap map = parse_split_index(files_.read_all(index_path, kMaxTextBytes), index_path);
  std::set<std::string> names;
  for (const auto& [tensor, file] : map) {
    names.insert(file);
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
  for (const auto& [tensor, file] : map) {
    const auto found = tensors_.find(std::string(kValuePrefix) + tensor);
    if (found == tensors_.end() || sources_[found->second.source].path != join(path_, file)) {
      damaged(index_path, "\"" + printable(tensor) + "\" is not in \"" + printable(file) + "\"");
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
        tensors_.try_emplace(std::move(key), Stored{{std::move(t), sources_.size()}, std::nullopt});
    if (!is_new) {
      damaged(path, "tensor \"" + printable(at->first) + "\" is in another file too");
    }
  }
  sources_.push_back({path, file.size(), header.data_offset});
  return std::move(header.metadata);
}

void Load::pair_scales() {
  std::vector<std::string> problems;
  for (auto& [key, stored] : tensors_) {
    const bool is_fp8 = stored.info.dtype.code == CIUIC_DTYPE_FLOAT8_E4M3FN;
    if (is_fp8) {
      const auto scales = tensors_.find(key + kScaleEnding);
      const TensorInfo* info = scales == tensors_.end() ? nullptr : &scales->second.info;
      if (auto problem = scale_problem(stored.info, info)) {
        problems.push_back(std::move(*problem));
      } else {
        stored.scales = scales->second;
      }
    } else if (ends_with(key, kScale)) {
      const auto weight =
          tensors_.find(std::string_view(key).substr(0, key.size() - kScale.size()));
      if (weight == tensors_.end()) {
        problems.push_back(name_of(key) + ": scales without a weight");
      } else if (weight->second.info.dtype.code != CIUIC_DTYPE_FLOAT8_E4M3FN) {
        problems.push_back(name_of(key) + ": scales, but " + name_of(weight->first) + " is " +
                           checkpoint::type_name(weight->second.info.dtype) + ", expected F8_E4M3");
      }
    }
  }
  refuse_all(problems);
  for (auto at = tensors_.begin(); at != tensors_.end();) {
    at = ends_with(at->first, kScale) ? tensors_.erase(at) : std::next(at);
  }
}

void Load::refuse_all(const std::vector<std::string>& problems) const {
  if (problems.empty()) {
    return;
  }
  std::string text;
  for (size_t i = 0; i < std::min(problems.size(), kProblemsShown); ++i) {
    text += (i == 0 ? "" : "; ") + problems[i];
  }
  if (problems.size() > kProblemsShown) {
    text += "; and " + std::to_string(problems.size() - kProblemsShown) + " more";
  }
  damaged(path_, text);
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
    c.dtype = stored.dtype();
    c.ndim = static_cast<int32_t>(stored.info.shape.size());
    c.global_shape = stored.info.shape.data();
    c.bytes = (stored.info.end - stored.info.begin) * checkpoint::type_bytes(stored.dtype()) /
              checkpoint::type_bytes(stored.info.dtype);
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

const checkpoint::File& Load::source(size_t number, Opened& slot) {
  if (!slot.file.is_open() || slot.number != number) {
    const Source& s = sources_[number];
    try {
      slot.file = files_.open(s.path);
    } catch (const Error& e) {
      if (e.code() == CIUIC_NOT_FOUND) {  // which would mean: no such key
        damaged(s.path, "missing");
      }
      throw;
    }
    slot.number = number;
    if (const uint64_t bytes = slot.file.size(); bytes != s.bytes) {
      damaged(s.path, "has " + std::to_string(bytes) + " bytes, had " + std::to_string(s.bytes) +
                          " when opened");
    }
  }
  return slot.file;
}

void Load::read(const Piece& piece, uint64_t offset, void* into, uint64_t bytes, Opened& slot) {
  const uint64_t begin = sources_[piece.source].data_offset + piece.info.begin;
  source(piece.source, slot).read(begin + offset, into, bytes);
}

/// Block by block, whatever the range; memory: some codes, and the scales of one row of blocks.
void Load::read_fp8(const std::string& key, const Stored& stored, int64_t begin, int64_t count,
                    char* into) {
  const Matrix matrix = matrix_of(stored.info);
  std::vector<float> row(static_cast<size_t>(matrix.block_columns()));
  int64_t row_number = -1;
  const auto scales = [&](int64_t block_row) -> const float* {
    if (block_row != row_number) {
      const uint64_t bytes = row.size() * sizeof(float);
      read(*stored.scales, static_cast<uint64_t>(block_row) * bytes, row.data(), bytes, scales_);
      if (!std::all_of(row.begin(), row.end(), [](float s) { return std::isfinite(s); })) {
        damaged(path_, name_of(key) + kScaleEnding + ": row " + std::to_string(block_row) +
                           " holds a scale that is not finite");
      }
      row_number = block_row;
    }
    return row.data();
  };
  std::vector<uint8_t> codes;
  std::vector<float> values;
  for (int64_t done = 0; done < count;) {
    const int64_t now = std::min(count - done, kCodesAtOnce);
    codes.resize(static_cast<size_t>(now));
    values.resize(codes.size());
    read(stored, static_cast<uint64_t>(begin + done), codes.data(), codes.size(), data_);
    if (const auto nan = std::find_if(codes.begin(), codes.end(), is_e4m3_nan);
        nan != codes.end()) {
      const int64_t at = begin + done + (nan - codes.begin());
      damaged(path_, name_of(key) + ": NaN at [" + std::to_string(at / matrix.columns) + ", " +
                         std::to_string(at % matrix.columns) +
                         "]; `ciuic checkpoint verify` lists all");
    }
    dequantise(matrix, begin + done, now, codes.data(), scales, values.data());
    std::memcpy(into + static_cast<size_t>(done) * sizeof(float), values.data(),
                values.size() * sizeof(float));
    done += now;
  }
}

void Load::verify(std::string_view key) {
  data_ = {};  // look at the files anew
  scales_ = {};
  std::vector<std::string> problems;
  if (!key.empty()) {
    if (blobs_.find(key) == blobs_.end()) {
      verify_data(std::string(key), find(key), problems);
    }
    refuse_all(problems);
    return;
  }
  for (size_t n = 0; n < sources_.size(); ++n) {
    (void)checkpoint::read_safetensors_header(source(n, data_));
  }
  for (const auto& [name, stored] : tensors_) {
    verify_data(name, stored, problems);
  }
  refuse_all(problems);
}

void Load::verify_data(const std::string& key, const Stored& stored,
                       std::vector<std::string>& problems) {
  const auto each_chunk = [&](const Piece& piece, Opened& slot, auto&& look) {
    const uint64_t bytes = piece.info.end - piece.info.begin;
    std::string chunk;
    for (uint64_t at = 0; at < bytes; at += chunk.size()) {
      chunk.resize(std::min(bytes - at, kChunkBytes));
      read(piece, at, chunk.data(), chunk.size(), slot);
      look(chunk);
    }
  };
  if (!stored.scales) {
    each_chunk(stored, data_, [](const std::string&) {});
    return;
  }
  int64_t num_nan = 0;
  each_chunk(stored, data_, [&](const std::string& chunk) {
    num_nan += std::count_if(chunk.begin(), chunk.end(),
                             [](char c) { return is_e4m3_nan(static_cast<uint8_t>(c)); });
  });
  if (num_nan > 0) {
    problems.push_back(name_of(key) + ": " + std::to_string(num_nan) + " NaN");
  }
  int64_t num_bad = 0;
  each_chunk(*stored.scales, scales_, [&](const std::string& chunk) {
    for (size_t i = 0; i + sizeof(float) <= chunk.size(); i += sizeof(float)) {
      float scale = 0;
      std::memcpy(&scale, chunk.data() + i, sizeof(scale));
      num_bad += std::isfinite(scale) ? 0 : 1;
    }
  });
  if (num_bad > 0) {
    problems.push_back(name_of(key) + kScaleEnding + ": " + std::to_string(num_bad) +
                       " scales that are not finite");
  }
}

Work Load::get(std::string_view key, const ciuic_place& place, const ciuic_tensor& into,
               const ciuic_stream* stream) {
  const Stored& stored = find(key);
  const TensorInfo& info = stored.info;
  if (!same(stored.dtype(), into.t.dtype)) {
    throw Error(CIUIC_INVALID, printable(key) + ": got a tensor of " + dtype_name(into.t.dtype) +
                                   ", stored is " + dtype_name(stored.dtype()));
  }
  const checkpoint::FlatRange range = checkpoint::flat_range(key, place, into);
  if (range.shape != info.shape) {
    throw Error(CIUIC_INVALID, printable(key) + ": got the shape " +
                                   checkpoint::shape_text(range.shape) + ", stored is " +
                                   checkpoint::shape_text(info.shape));
  }
  const uint64_t element = checkpoint::type_bytes(info.dtype);
  checkpoint::fill_tensor(host(), into, stream, [&](char* bytes) {
    if (stored.scales) {
      read_fp8(std::string(key), stored, range.begin, range.count, bytes);
    } else {
      read(stored, static_cast<uint64_t>(range.begin) * element, bytes,
           static_cast<uint64_t>(range.count) * element, data_);
    }
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
