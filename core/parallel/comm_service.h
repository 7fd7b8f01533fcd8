// SPDX-License-Identifier: MIT
//
// The "ciuic.comm" service: the groups of the process mesh by name. There is one axis now, data:
// "world", "data", "expert_data" and "control" are the same ranks.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>

#include "core/parallel/group.h"

namespace ciuic::core {

class CommService {
 public:
  /// `data` is the group of all ranks; group ids are those of `groups`, in order, from 1.
  CommService(const ciuic_host* host, std::vector<Group*> groups);
  CommService(const CommService&) = delete;
  CommService& operator=(const CommService&) = delete;

  [[nodiscard]] const ciuic_comm_service& table() const noexcept { return table_; }

 private:
  static ciuic_comm_service make_table(CommService* self);

  Host host_;
  std::vector<Group*> groups_;
  ciuic_comm_service table_;
};

}  // namespace ciuic::core
