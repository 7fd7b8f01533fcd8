// SPDX-License-Identifier: MIT
//
// safetensors: models as the rest of the world reads them. A uri that ends in .safetensors is one
// file, whose keys are the tensors' names as they stand; any other is a Hugging Face folder,
// config.json and model.safetensors (or model.safetensors.index.json and its files), whose keys are
// value/<name> and the blob "config.json". A folder's FP8 blocks are read as fp32.
//
// Format: https://github.com/huggingface/safetensors#format. It holds values only and no checksums:
// "sharded" is for training.
#include <array>

#include <ciuic/checkpoint.hpp>
#include <ciuic/error.hpp>

#include "load.h"
#include "save.h"

namespace ciuic::plugins::safetensors {

class Safetensors final : public Checkpoint {
 public:
  static constexpr const char* name = "safetensors";
  static constexpr const char* version = "0.1.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "Safetensors files and Hugging Face model folders";
  /// Rank 0 puts all; the format has no checksums.
  static constexpr std::array<const char*, 3> features{"writer:rank0", "checksums:none", nullptr};
  inline static const auto options = option_table(
      option_enum("dtype", kExportTypeNames[0], kExportTypeNames,
                  "Element type of a model folder's floating-point tensors: as they are put, fp32, "
                  "bf16, or FP8 (e4m3fn) with a scale per 128 x 128 block"),
      option_size(
          "max_file_size", 5'000'000'000, 4096, int64_t{1} << 50,
          "Data in one file of a model folder; more becomes model-00001-of-0000N.safetensors "
          "and an index"),
      option_duration("timeout", 1'800'000'000'000, 1'000'000'000, 86'400'000'000'000,
                      "How long a rank waits at a commit for rank 0 to have written"));

  explicit Safetensors(const Context& context)
      : Checkpoint(context),
        save_options_{context.options().i64("timeout"),
                      export_type_of(context.options().string("dtype")),
                      static_cast<uint64_t>(context.options().i64("max_file_size"))} {}

  std::unique_ptr<Archive> begin(const ciuic_save_request& request) override {
    return std::make_unique<Save>(host(), request, save_options_);
  }

  /// Not collective: each rank reads what it needs.
  std::unique_ptr<Archive> open(std::string_view uri) override {
    return std::make_unique<Load>(host(), checkpoint::path_of_uri(uri));
  }

  void remove(std::string_view uri) override;

 private:
  SaveOptions save_options_;
};

/// Only what this plugin can read is removed, and a folder is moved out of the way first.
void Safetensors::remove(std::string_view uri) {
  const checkpoint::Files files(host());
  const std::string path = checkpoint::path_of_uri(uri);
  if (means_file(path)) {
    files.remove(path, false);
    return;
  }
  (void)Load(host(), path);
  const std::string aside = path + ".removed";
  files.remove_if_there(aside, true);
  files.rename(path, aside);
  files.sync_directory(checkpoint::parent_of(path));
  files.remove(aside, true);
}

}  // namespace ciuic::plugins::safetensors

CIUIC_PLUGINS(ciuic::plugins::safetensors::Safetensors)
