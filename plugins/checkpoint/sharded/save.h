// SPDX-License-Identifier: MIT
//
// A sharded checkpoint being written.
#pragma once

#include <optional>
#include <string_view>

#include <ciuic/checkpoint.hpp>

#include "checkpoint_format/control_group.h"
#include "checkpoint_format/files.h"
#include "checkpoint_format/put_buffer.h"

namespace ciuic::plugins::sharded {

/// put only remembers (see PutBuffer for the memory this takes); commit writes, and blocks until
/// the checkpoint is durable or given up on all ranks. Made, committed and destroyed by all ranks
/// together.
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
  void make_room();
  void write_part();
  void join_parts();
  void clean() noexcept;
  void check_open() const;

  checkpoint::Files files_;
  checkpoint::ControlGroup group_;
  std::optional<checkpoint::SaveRequest> request_;
  checkpoint::PutBuffer puts_;
  bool is_prepared_ = false;  // the folder aside is there, and rank 0 owes its removal
  bool is_ended_ = false;
};

}  // namespace ciuic::plugins::sharded
