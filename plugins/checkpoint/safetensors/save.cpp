// SPDX-License-Identifier: MIT
#include "save.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include <ciuic/error.hpp>
#include <ciuic/work.hpp>

#include "checkpoint_format/strict_json.h"
#include "checkpoint_format/tensor_types.h"
#include "load.h"

namespace ciuic::plugins::safetensors {
namespace {

using checkpoint::Described;
using checkpoint::join;
using checkpoint::Listed;
using checkpoint::partial_of;
using checkpoint::printable;
using checkpoint::PutPiece;

/// The metadata blob as the header wants it: {"name": "text"}.
std::map<std::string, std::string> parse_metadata(std::string_view text) {
  try {
    return checkpoint::parse_strict(text, kMetadataKey).get<std::map<std::string, std::string>>();
  } catch (const std::exception& e) {
    throw Error(CIUIC_INVALID,
                std::string("the blob __metadata__ is no JSON object of strings: ") + e.what());
  }
}

}  // namespace

Save::Save(const Host& host, const ciuic_save_request& request, int64_t timeout_ns)
    : Archive(host), files_(host), group_(host, timeout_ns), puts_(host) {
  group_.together([&] {
    request_.emplace(request);
    is_file_ = means_file(request_->path);
    check_keys();
  });
  group_.same_everywhere(request_->fingerprint, "path, step or entries of a save");
  group_.together([&] {
    if (group_.rank() == 0) {
      check_target();
      checkpoint::check_space(files_, request_->path,
                              request_->bytes + uint64_t{512} * request_->entries.size());
    }
  });
}

Save::~Save() { clean(); }

// ---- what may be saved ----

void Save::check_keys() const {
  for (const auto& [key, entry] : request_->entries) {
    check_key(key, entry.is_blob);
  }
}

void Save::check_key(std::string_view key, bool is_blob) const {
  if (is_file_) {
    if (is_blob != (key == kMetadataKey)) {
      throw Error(CIUIC_UNIMPLEMENTED,
                  "safetensors: a file holds tensors and the blob __metadata__; got the " +
                      std::string(is_blob ? "blob " : "tensor ") + printable(key));
    }
    return;
  }
  const bool is_value =
      key.size() > kValuePrefix.size() && key.substr(0, kValuePrefix.size()) == kValuePrefix;
  if (is_blob ? key != kConfigName : !is_value) {
    throw Error(CIUIC_UNIMPLEMENTED, "safetensors holds values only; got " + printable(key) +
                                         "; use sharded for training");
  }
  if (key.substr(std::min(kValuePrefix.size(), key.size())) == kMetadataKey) {
    throw Error(CIUIC_INVALID,
                printable(key) + ": a safetensors file cannot hold a tensor of this name");
  }
}

/// A file is replaced in one rename. A folder cannot be: two files of it would be of two models for
/// a moment.
void Save::check_target() const {
  std::vector<Listed> listing;
  const auto found = files_.look(request_->path, listing);
  const bool is_free = found == checkpoint::Files::Found::Nothing ||
                       (is_file_ ? found == checkpoint::Files::Found::File
                                 : found == checkpoint::Files::Found::Folder && listing.empty());
  if (!is_free) {
    throw Error(CIUIC_EXISTS,
                request_->path + " exists already; move it away or choose another name");
  }
}

void Save::check_open() const {
  if (is_ended_) {
    throw Error(CIUIC_PRECONDITION, "this save was committed already");
  }
}

Work Save::put(std::string_view key, const ciuic_place& place, const ciuic_tensor& tensor,
               const ciuic_stream* stream) {
  check_open();
  try {
    check_key(key, false);
  } catch (const Error& e) {
    puts_.refuse(e);
  }
  puts_.put(key, place, tensor, stream);
  return {};
}

void Save::put_blob(std::string_view key, std::string_view bytes) {
  check_open();
  try {
    check_key(key, true);
  } catch (const Error& e) {
    puts_.refuse(e);
  }
  puts_.put_blob(key, bytes);
}

// ---- commit ----

Work Save::commit() {
  check_open();
  is_ended_ = true;
  try {
    group_.together([&] {
      puts_.check();
      if (group_.rank() != 0 && !puts_.pieces().empty()) {
        throw Error(CIUIC_UNIMPLEMENTED,
                    "safetensors is written by rank 0 alone; rank " +
                        std::to_string(group_.rank()) + " of " + std::to_string(group_.size()) +
                        " put " + printable(puts_.pieces().front().key) +
                        "; use sharded to save from " + std::to_string(group_.size()) + " ranks");
      }
    });
    group_.together([&] {
      if (group_.rank() == 0) {
        write();
      }
    });
    return {};
  } catch (const Error& e) {
    clean();
    const Completion failed(host());
    failed.fail(e);
    return failed.work();
  }
}

void Save::write() {
  Plan p = plan();
  const std::string aside = partial_of(request_->path);
  checkpoint::check_space(files_, request_->path, puts_.bytes() + uint64_t{512} * p.tensors.size());
  files_.make_directory(checkpoint::parent_of(request_->path));
  files_.remove_if_there(aside, true);
  is_written_aside_ = true;
  if (is_file_) {
    const auto metadata = p.blobs.find(kMetadataKey);
    write_tensors(aside, p,
                  metadata == p.blobs.end() ? std::map<std::string, std::string>()
                                            : parse_metadata(metadata->second));
  } else {
    const auto config = p.blobs.find(kConfigName);
    if (config == p.blobs.end()) {
      throw Error(CIUIC_INVALID, std::string("the blob ") + kConfigName + " was not put");
    }
    files_.make_directory(aside);
    write_tensors(join(aside, kModelName), p, {{"format", "pt"}});
    files_.write_new(join(aside, kConfigName), config->second);
    files_.sync_directory(aside);
  }
  files_.rename(aside, request_->path);
  is_written_aside_ = false;
  files_.sync_directory(checkpoint::parent_of(request_->path));
}

Save::Plan Save::plan() {
  Plan p;
  std::map<std::string, Described, std::less<>> got;
  for (PutPiece& piece : puts_.pieces()) {
    const auto [at, is_new] = got.try_emplace(piece.key, piece.tensor);
    if (piece.tensor.is_blob) {
      if (!is_new) {
        throw Error(CIUIC_INVALID, "blob " + printable(piece.key) + " was put twice");
      }
      p.blobs[piece.key] = {piece.bytes.data(), piece.bytes.size()};
      continue;
    }
    if (!same(at->second.dtype, piece.tensor.dtype) || at->second.shape != piece.tensor.shape) {
      throw Error(CIUIC_INVALID, printable(piece.key) + " was put with two types or shapes");
    }
    p.pieces[piece.key].push_back(&piece);
  }
  checkpoint::check_announced(*request_, got);
  for (auto& [key, pieces] : p.pieces) {
    std::sort(pieces.begin(), pieces.end(),
              [](const PutPiece* a, const PutPiece* b) { return a->begin < b->begin; });
    std::vector<checkpoint::Span> spans;
    for (const PutPiece* piece : pieces) {
      spans.push_back({piece->begin, piece->count, "one put"});
    }
    const Described& d = got.at(key);
    if (const auto problem = checkpoint::tiling_problem(
            spans, checkpoint::shape_elements(d.shape, d.dtype).value())) {
      throw Error(CIUIC_INVALID, printable(key) + ": " + *problem);
    }
    p.keys.push_back(key);
  }
  // Wide elements first: then every tensor lies aligned to its own type.
  std::stable_sort(p.keys.begin(), p.keys.end(), [&](const std::string& a, const std::string& b) {
    return checkpoint::type_bytes(got.at(a).dtype) > checkpoint::type_bytes(got.at(b).dtype);
  });
  for (const std::string& key : p.keys) {
    const Described& d = got.at(key);
    p.tensors.push_back({is_file_ ? key : key.substr(kValuePrefix.size()), d.dtype, d.shape, 0, 0});
  }
  return p;
}

void Save::write_tensors(const std::string& path, Plan& p,
                         const std::map<std::string, std::string>& metadata) const {
  const std::string prefix = checkpoint::make_safetensors_prefix(p.tensors, metadata);
  const checkpoint::File file = files_.create(path);
  checkpoint::SequentialWriter writer(file, 0);
  writer.append(prefix.data(), prefix.size());
  for (const std::string& key : p.keys) {
    for (PutPiece* piece : p.pieces.at(key)) {
      writer.append(piece->bytes.data(), piece->bytes.size());
      piece->bytes = {};
    }
  }
  writer.flush();
  file.sync();
}

void Save::clean() noexcept {
  if (!std::exchange(is_written_aside_, false)) {
    return;
  }
  try {
    files_.remove_if_there(partial_of(request_->path), true);
  } catch (const std::exception& e) {
    host().warn("safetensors: " + partial_of(request_->path) +
                " stays, the next save there removes it: " + e.what());
  }
}

}  // namespace ciuic::plugins::safetensors
