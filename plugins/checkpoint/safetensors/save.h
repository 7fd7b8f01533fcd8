// SPDX-License-Identifier: MIT
//
// A safetensors file, or a Hugging Face model folder, being written.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <ciuic/checkpoint.hpp>
#include <ciuic/error.hpp>

#include "checkpoint_format/control_group.h"
#include "checkpoint_format/files.h"
#include "checkpoint_format/put_buffer.h"
#include "layout.h"
#include "tensor_writer.h"

namespace ciuic::plugins::safetensors {

struct SaveOptions {
  int64_t timeout_ns = 0;
  ExportType type = ExportType::AsStored;
  uint64_t max_file_bytes = 0;
};

/// Rank 0 puts and writes everything; others only agree. Made, committed and destroyed by all ranks
/// together. Tensors that were announced go to their files at once, beside the target; so do those
/// that were not, at the commit, and till then rank 0 holds a copy of each that is not STABLE.
class Save final : public Archive {
 public:
  Save(const Host& host, const ciuic_save_request& request, const SaveOptions& options);
  /// Without a commit nothing is left.
  ~Save() override;

  Work put(std::string_view key, const ciuic_place& place, const ciuic_tensor& tensor,
           const ciuic_stream* stream) override;
  void put_blob(std::string_view key, std::string_view bytes) override;
  Work commit() override;

 private:
  void check_target() const;
  void check_keys() const;
  void check_key(std::string_view key, bool is_blob) const;
  void check_open() const;

  [[nodiscard]] Layout make_layout(const DescribedTensors& tensors,
                                   const std::map<std::string, std::string>& metadata) const;
  /// Is the whole layout known before anything is put?
  [[nodiscard]] bool is_streamed() const;
  /// Makes what lies aside until the commit, and the files in it.
  void begin_writing();
  /// What was put and is not yet in a file.
  void write_new_pieces();

  /// All elements of all announced tensors, each once. Returns the blobs.
  using Blobs = std::map<std::string, std::string_view>;
  Blobs check_complete();
  void write_rest(const Blobs& blobs);
  void publish();
  void clean() noexcept;

  checkpoint::Files files_;
  checkpoint::ControlGroup group_;
  std::optional<checkpoint::SaveRequest> request_;
  checkpoint::PutBuffer puts_;
  SaveOptions options_;
  std::optional<Layout> layout_;
  std::optional<TensorWriter> writer_;
  size_t written_ = 0;           // pieces
  std::optional<Error> failed_;  // what ended the writing
  bool is_file_ = false;
  bool is_written_aside_ = false;
  bool is_ended_ = false;
};

}  // namespace ciuic::plugins::safetensors
