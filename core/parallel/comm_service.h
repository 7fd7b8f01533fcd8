// SPDX-License-Identifier: MIT
//
// The "ciuic.comm" service: the groups of the process mesh by name, and groups that a plugin splits
// off for itself.
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
  /// `groups` outlive this object, which outlives what was split off them.
  CommService(const ciuic_host* host, std::vector<Group*> groups);
  ~CommService();
  CommService(const CommService&) = delete;
  CommService& operator=(const CommService&) = delete;

  [[nodiscard]] const ciuic_comm_service& table() const noexcept { return table_; }

 private:
  static ciuic_comm_service make_table(CommService* self);
  [[nodiscard]] const Group* find(uint32_t id) const;
  ciuic_status* split(uint32_t parent, const ciuic_split& request, const ciuic_group** out);

  Host host_;
  std::vector<Group*> groups_;
  std::vector<std::unique_ptr<Group>> own_;  // split off, oldest first
  ciuic_comm_service table_;
};

}  // namespace ciuic::core
