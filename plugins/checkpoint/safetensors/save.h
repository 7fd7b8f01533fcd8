// SPDX-License-Identifier: MIT
//
// A safetensors file, or a Hugging Face model folder, being written.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/checkpoint.hpp>

#include "checkpoint_format/control_group.h"
#include "checkpoint_format/files.h"
#include "checkpoint_format/put_buffer.h"
#include "checkpoint_format/safetensors_header.h"

namespace ciuic::plugins::safetensors {

/// Rank 0 puts and writes everything, at the commit; others only agree. Made, committed and
/// destroyed by all ranks together. Memory: rank 0 holds a copy of each tensor that is not STABLE
/// until the commit.
class Save final : public Archive {
 public:
  Save(const Host& host, const ciuic_save_request& request, int64_t timeout_ns);
  /// Without a commit nothing is left.
  ~Save() override;

  Work put(std::string_view key, const ciuic_place& place, const ciuic_tensor& tensor,
           const ciuic_stream* stream) override;
  void put_blob(std::string_view key, std::string_view bytes) override;
  Work commit() override;

 private:
  struct Plan {
    std::vector<checkpoint::TensorInfo> tensors;                       // in the order of the file
    std::map<std::string, std::vector<checkpoint::PutPiece*>> pieces;  // by key, then by begin
    std::vector<std::string> keys;                                     // of `tensors`
    std::map<std::string, std::string_view> blobs;
  };

  void check_target() const;
  void check_keys() const;
  void check_key(std::string_view key, bool is_blob) const;
  void check_open() const;
  void write();
  [[nodiscard]] Plan plan();
  void write_tensors(const std::string& path, Plan& plan,
                     const std::map<std::string, std::string>& metadata) const;
  void clean() noexcept;

  checkpoint::Files files_;
  checkpoint::ControlGroup group_;
  std::optional<checkpoint::SaveRequest> request_;
  checkpoint::PutBuffer puts_;
  bool is_file_ = false;
  bool is_written_aside_ = false;
  bool is_ended_ = false;
};

}  // namespace ciuic::plugins::safetensors
