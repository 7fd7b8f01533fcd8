// SPDX-License-Identifier: MIT
#include "save.h"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include <ciuic/error.hpp>
#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

#include "checkpoint_format/strict_json.h"
#include "checkpoint_format/tensor_types.h"
#include "fp8_blocks.h"
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

/// In a folder such a tensor means blocks with scales.
[[noreturn]] void refuse_e4m3(std::string_view key) {
  throw Error(CIUIC_UNIMPLEMENTED,
              "safetensors: " + printable(key) +
                  " is float8_e4m3fn; put it as F32, BF16 or F16 and set dtype = \"fp8_block\"");
}

DescribedTensors tensors_in(const DescribedTensors& all) {
  DescribedTensors tensors;
  std::copy_if(all.begin(), all.end(), std::inserter(tensors, tensors.end()),
               [](const auto& entry) { return !entry.second.is_blob; });
  return tensors;
}

}  // namespace

Save::Save(const Host& host, const ciuic_save_request& request, const SaveOptions& options)
    : Archive(host),
      files_(host),
      group_(host, options.timeout_ns),
      puts_(host),
      options_(options) {
  group_.together([&] {
    request_.emplace(request);
    is_file_ = means_file(request_->path);
    check_keys();
    if (is_streamed()) {
      layout_ = make_layout(tensors_in(request_->entries), {});
    }
  });
  group_.same_everywhere(request_->fingerprint, "path, step or entries of a save");
  group_.together([&] {
    if (group_.rank() == 0) {
      check_target();
      checkpoint::check_space(files_, request_->path,
                              layout_ ? layout_->file_bytes()
                                      : request_->bytes + uint64_t{512} * request_->entries.size());
    }
  });
}

Save::~Save() { clean(); }

// ---- what may be saved ----

void Save::check_keys() const {
  for (const auto& [key, entry] : request_->entries) {
    check_key(key, entry.is_blob);
    if (!is_file_ && entry.dtype.code == CIUIC_DTYPE_FLOAT8_E4M3FN) {
      refuse_e4m3(key);
    }
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
  const std::string_view name = key.substr(std::min(kValuePrefix.size(), key.size()));
  if (name == kMetadataKey) {
    throw Error(CIUIC_INVALID,
                printable(key) + ": a safetensors file cannot hold a tensor of this name");
  }
  constexpr std::string_view kScale = kScaleEnding;
  if (name.size() >= kScale.size() && name.substr(name.size() - kScale.size()) == kScale) {
    throw Error(CIUIC_UNIMPLEMENTED,
                "safetensors: " + printable(key) +
                    " has a name that a model folder keeps for the scales of FP8 weights");
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
    if (!is_file_ && tensor.t.dtype.code == CIUIC_DTYPE_FLOAT8_E4M3FN) {
      refuse_e4m3(key);
    }
  } catch (const Error& e) {
    puts_.refuse(e);
  }
  puts_.put(key, place, tensor, stream);
  if (layout_ && group_.rank() == 0 && !failed_) {
    try {
      begin_writing();
      write_new_pieces();
    } catch (const Error& e) {
      failed_ = e;
      if (group_.size() == 1) {
        throw;  // with others, at the commit, where all wait for it
      }
    }
  }
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
        if (failed_) {
          throw Error(*failed_);
        }
        write_rest(check_complete());
        publish();
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

bool Save::is_streamed() const {
  return !request_->entries.empty() &&
         !(is_file_ && request_->entries.find(kMetadataKey) != request_->entries.end());
}

Layout Save::make_layout(const DescribedTensors& tensors,
                         const std::map<std::string, std::string>& metadata) const {
  return is_file_ ? file_layout(tensors, metadata)
                  : folder_layout(tensors, kValuePrefix, options_.type, options_.max_file_bytes);
}

void Save::begin_writing() {
  if (writer_) {
    return;
  }
  const std::string aside = partial_of(request_->path);
  files_.make_directory(checkpoint::parent_of(request_->path));
  files_.remove_if_there(aside, true);
  is_written_aside_ = true;
  if (!is_file_) {
    files_.make_directory(aside);
  }
  std::vector<std::string> paths;
  for (const Layout::File& file : layout_->files) {
    paths.push_back(is_file_ ? aside : join(aside, file.name));
  }
  writer_.emplace(files_, *layout_, paths);
}

/// A piece that is not as announced stays unwritten: the commit says so.
void Save::write_new_pieces() {
  for (; written_ < puts_.pieces().size(); ++written_) {
    PutPiece& piece = puts_.pieces()[written_];
    const auto found = layout_->targets.find(piece.key);
    if (found != layout_->targets.end() && !piece.tensor.is_blob &&
        same(found->second.put, piece.tensor.dtype) && found->second.shape == piece.tensor.shape) {
      writer_->write(found->second, piece.begin, piece.count, piece.bytes.data());
      piece.bytes = {};
    }
  }
}

Save::Blobs Save::check_complete() {
  Blobs blobs;
  DescribedTensors got;
  std::map<std::string, std::vector<checkpoint::Span>> spans;
  for (const PutPiece& piece : puts_.pieces()) {
    const auto [at, is_new] = got.try_emplace(piece.key, piece.tensor);
    if (piece.tensor.is_blob) {
      if (!is_new) {
        throw Error(CIUIC_INVALID, "blob " + printable(piece.key) + " was put twice");
      }
      blobs[piece.key] = {piece.bytes.data(), piece.bytes.size()};
      continue;
    }
    if (!same(at->second.dtype, piece.tensor.dtype) || at->second.shape != piece.tensor.shape) {
      throw Error(CIUIC_INVALID, printable(piece.key) + " was put with two types or shapes");
    }
    spans[piece.key].push_back({piece.begin, piece.count, "one put"});
  }
  checkpoint::check_announced(*request_, got);
  for (auto& [key, parts] : spans) {
    const Described& d = got.at(key);
    if (const auto problem = checkpoint::tiling_problem(
            parts, checkpoint::shape_elements(d.shape, d.dtype).value())) {
      throw Error(CIUIC_INVALID, printable(key) + ": " + *problem);
    }
  }
  if (!is_file_ && blobs.find(kConfigName) == blobs.end()) {
    throw Error(CIUIC_INVALID, std::string("the blob ") + kConfigName + " was not put");
  }
  if (!layout_) {
    const auto metadata = blobs.find(kMetadataKey);
    layout_ =
        make_layout(tensors_in(got), metadata == blobs.end() ? std::map<std::string, std::string>()
                                                             : parse_metadata(metadata->second));
    checkpoint::check_space(files_, request_->path, layout_->file_bytes());
  }
  return blobs;
}

void Save::write_rest(const Blobs& blobs) {
  const std::string config =
      is_file_ ? "" : exported_config(std::string(blobs.at(kConfigName)), options_.type);
  begin_writing();
  write_new_pieces();
  writer_->finish();
  if (is_file_) {
    return;
  }
  const std::string aside = partial_of(request_->path);
  if (layout_->files.size() > 1) {
    files_.write_new(join(aside, kSplitIndexName),
                     make_split_index(layout_->weight_map(), layout_->data_bytes));
  }
  files_.write_new(join(aside, kConfigName), config);
  files_.sync_directory(aside);
}

void Save::publish() {
  writer_.reset();  // closes the files
  files_.rename(partial_of(request_->path), request_->path);
  is_written_aside_ = false;
  files_.sync_directory(checkpoint::parent_of(request_->path));
}

void Save::clean() noexcept {
  writer_.reset();
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
