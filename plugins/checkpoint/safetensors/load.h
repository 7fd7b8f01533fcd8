// SPDX-License-Identifier: MIT
//
// A safetensors file, or a Hugging Face model folder, open for reading.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/checkpoint.hpp>

#include "checkpoint_format/files.h"
#include "checkpoint_format/safetensors_header.h"

namespace ciuic::plugins::safetensors {

inline constexpr const char* kConfigName = "config.json";
inline constexpr const char* kModelName = "model.safetensors";
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
  struct Stored {
    checkpoint::TensorInfo info;
    size_t source = 0;
  };

  void open_file();
  void open_folder();
  void open_split_model(const std::string& index_path);
  /// Takes in a file's tensors under `prefix` + name; returns its metadata.
  std::map<std::string, std::string> add_source(const std::string& path, std::string_view prefix);
  void list_entries();
  [[nodiscard]] const Stored& find(std::string_view key) const;
  [[nodiscard]] const checkpoint::File& source(size_t number);
  void verify_data(const Stored& stored);

  checkpoint::Files files_;
  std::string path_;
  std::vector<Source> sources_;
  std::map<std::string, Stored, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> blobs_;
  std::vector<ciuic_entry> listed_;
  checkpoint::File open_;  // the file that was read last
  size_t open_number_ = 0;
};

}  // namespace ciuic::plugins::safetensors
