// SPDX-License-Identifier: MIT
#include "core/parallel/comm_service.h"

#include <string>
#include <utility>

#include <ciuic/view.hpp>

namespace ciuic::core {
namespace {

constexpr uint32_t kFirstOwnId = 1000;  // beyond the mesh's, so that reports tell them apart

}  // namespace

CommService::CommService(const ciuic_host* host, std::vector<Group*> groups)
    : host_(host), groups_(std::move(groups)), table_(make_table(this)) {}

/// Children go before what they were split off.
CommService::~CommService() {
  while (!own_.empty()) {
    own_.pop_back();
  }
}

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
    if (const Group* g = me->find(id)) {
      *out = &g->c();
      return static_cast<ciuic_status*>(nullptr);
    }
    return me->host_.status(CIUIC_NOT_FOUND, "there is no group with id " + std::to_string(id));
  };
  s.split = [](void* ctx, uint32_t parent, const ciuic_split* request, const ciuic_group** out) {
    return static_cast<CommService*>(ctx)->split(parent, *request, out);
  };
  return s;
}

const Group* CommService::find(uint32_t id) const {
  for (const Group* g : groups_) {
    if (g->c().id == id) {
      return g;
    }
  }
  for (const auto& g : own_) {
    if (g->c().id == id) {
      return g.get();
    }
  }
  return nullptr;
}

ciuic_status* CommService::split(uint32_t parent, const ciuic_split& request,
                                 const ciuic_group** out) {
  *out = nullptr;
  const Group* group = find(parent);
  if (group == nullptr) {
    return host_.status(CIUIC_NOT_FOUND,
                        "split: there is no group with id " + std::to_string(parent));
  }
  try {
    if (auto child = group->split(request, kFirstOwnId + static_cast<uint32_t>(own_.size()))) {
      *out = &own_.emplace_back(std::move(child))->c();
    }
  } catch (const Failure& failure) {
    const bool is_peer = failure.code() == ExitCode::Communication;
    return host_.status(is_peer ? CIUIC_UNAVAILABLE : CIUIC_INVALID, failure.what());
  }
  return nullptr;
}

}  // namespace ciuic::core
