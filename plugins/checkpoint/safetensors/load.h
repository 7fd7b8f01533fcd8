// SPDX-License-Identifier: MIT
//
// A safetensors file, or a Hugging Face model folder, open for reading.
//
// A folder's FP8 weight (`X.weight` of e4m3fn codes with `X.weight_scale_inv`) is listed as one
// tensor of F32 and dequantised as it is read; its scales are not listed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/checkpoint.hpp>
#include <ciuic/view.hpp>

#include "checkpoint_format/files.h"
#include "checkpoint_format/safetensors_header.h"
#include "layout.h"

namespace ciuic::plugins::safetensors {

inline constexpr const char* kConfigName = "config.json";
inline constexpr const char* kSplitIndexName = "model.safetensors.index.json";
inline constexpr const char* kMetadataKey = "__metadata__";
inline constexpr std::string_view kValuePrefix = "value/";

/// Does this uri mean one file rather than a folder?
[[nodiscard]] bool means_file(std::string_view path);

/// The format has no checksums: what can be checked is that headers and sizes are sound and that
/// the data can be read. One call at a time.
class Load final : public Archive {
 public:
  Load(const Host& host, std::string path);

  const std::vector<ciuic_entry>& list() override { return listed_; }
  void verify(std::string_view key) override;
  Work get(std::string_view key, const ciuic_place& place, const ciuic_tensor& into,
           const ciuic_stream* stream) override;
  std::string_view get_blob(std::string_view key) override;

 private:
  struct Source {
    std::string path;
    uint64_t bytes = 0, data_offset = 0;
  };
  struct Piece {
    checkpoint::TensorInfo info;
    size_t source = 0;
  };
  struct Stored : Piece {
    std::optional<Piece> scales;  // this is an FP8 weight
    /// As it is listed and read.
    [[nodiscard]] ciuic_dtype dtype() const { return scales ? kF32 : info.dtype; }
  };
  struct Opened {
    checkpoint::File file;
    size_t number = 0;
  };

  void open_file();
  void open_folder();
  void open_split_model(const std::string& index_path);
  /// Takes in a file's tensors under `prefix` + name; returns its metadata.
  std::map<std::string, std::string> add_source(const std::string& path, std::string_view prefix);
  /// Gives each FP8 weight its scales. Throws DATA_LOSS with all that do not fit.
  void pair_scales();
  void list_entries();
  [[nodiscard]] const Stored& find(std::string_view key) const;
  /// `slot`: data and scales, which may lie in two files, are read by turns.
  [[nodiscard]] const checkpoint::File& source(size_t number, Opened& slot);
  void read(const Piece& piece, uint64_t offset, void* into, uint64_t bytes, Opened& slot);
  void read_fp8(const std::string& key, const Stored& stored, int64_t begin, int64_t count,
                char* into);
  /// Appends what is wrong with the tensor's numbers; throws when they cannot be read.
  void verify_data(const std::string& key, const Stored& stored,
                   std::vector<std::string>& problems);
  void refuse_all(const std::vector<std::string>& problems) const;

  checkpoint::Files files_;
  std::string path_;
  std::vector<Source> sources_;
  std::map<std::string, Stored, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> blobs_;
  std::vector<ciuic_entry> listed_;
  Opened data_, scales_;  // the files that were read last
};

}  // namespace ciuic::plugins::safetensors
