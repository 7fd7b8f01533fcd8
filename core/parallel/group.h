// SPDX-License-Identifier: MIT
//
// A group of ranks as plugins and the host see it: the host's own functions around a communicator
// plugin, which account time, send events and number the collectives. The raw plugin is never
// handed out.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <ciuic/abi/communicator.h>

#include "core/parallel/comm_clock.h"
#include "core/plugin/communicator.h"
#include "core/plugin/events.h"

namespace ciuic::core {

class Group {
 public:
  /// `ranks`: the global rank of each group rank. `plugin` may be shared by groups of the same
  /// ranks.
  Group(std::string name, uint32_t id, std::shared_ptr<CommunicatorPlugin> plugin, int rank,
        std::vector<int32_t> ranks, CommClock& clock, Events& events);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// A group of some of these ranks, `request.ranks` in this group's numbering; NULL where count is
  /// 0. All ranks of this group call. Destroy it before this one. Throws Failure.
  [[nodiscard]] std::unique_ptr<Group> split(const ciuic_split& request, uint32_t id) const;

  [[nodiscard]] const ciuic_group& c() const noexcept { return group_; }
  [[nodiscard]] int rank() const noexcept { return group_.rank; }
  [[nodiscard]] int size() const noexcept { return group_.size; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const CommunicatorPlugin& plugin() const noexcept { return *plugin_; }

 private:
  static const ciuic_communicator_vt& table();
  /// Likewise, of plugins that have memory of their own.
  static const ciuic_communicator_vt& table_with_memory();
  static ciuic_status* submit(ciuic_instance*, ciuic_array, const ciuic_stream*, ciuic_work**);

  std::string name_;
  std::shared_ptr<CommunicatorPlugin> plugin_;
  std::vector<int32_t> ranks_;
  std::vector<int32_t> nodes_;
  CommClock& clock_;
  Events& events_;
  std::atomic<uint64_t> sequence_{0};
  ciuic_group group_{};
};

}  // namespace ciuic::core
