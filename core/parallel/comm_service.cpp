// SPDX-License-Identifier: MIT
#include "core/parallel/comm_service.h"

#include <string>

#include <ciuic/view.hpp>

namespace ciuic::core {

CommService::CommService(const ciuic_host* host, std::vector<Group*> groups)
    : host_(host), groups_(std::move(groups)), table_(make_table(this)) {}

ciuic_comm_service CommService::make_table(CommService* self) {
  ciuic_comm_service s{};
  s.struct_size = sizeof(s);
  s.ctx = self;
  s.find = [](void* ctx, ciuic_str name, const ciuic_group** out) {
    auto* me = static_cast<CommService*>(ctx);
    for (const Group* g : me->groups_) {
      if (g->name() == to_view(name)) {
        *out = &g->c();
        return static_cast<ciuic_status*>(nullptr);
      }
    }
    return me->host_.status(CIUIC_NOT_FOUND, "there is no group " + std::string(to_view(name)));
  };
  s.by_id = [](void* ctx, uint32_t id, const ciuic_group** out) {
    auto* me = static_cast<CommService*>(ctx);
    for (const Group* g : me->groups_) {
      if (g->c().id == id) {
        *out = &g->c();
        return static_cast<ciuic_status*>(nullptr);
      }
    }
    return me->host_.status(CIUIC_NOT_FOUND, "there is no group with id " + std::to_string(id));
  };
  s.split = [](void* ctx, uint32_t, const ciuic_split*, const ciuic_group**) {
    auto* me = static_cast<CommService*>(ctx);
    return me->host_.status(CIUIC_UNIMPLEMENTED, "groups of a plugin's own are not built yet");
  };
  return s;
}

}  // namespace ciuic::core
