// SPDX-License-Identifier: MIT
#include "core/parallel/kv_service.h"

#include <cstring>

namespace ciuic::core {

std::string KvService::full(ciuic_str key) const {
  return prefix_ + "/" + std::string(to_view(key));
}

KvService::KvService(const ciuic_host* host, Rendezvous& rendezvous, std::string prefix)
    : host_(host), rendezvous_(rendezvous), prefix_(std::move(prefix)) {
  table_.struct_size = sizeof(table_);
  table_.ctx = this;
  table_.set = [](void* ctx, ciuic_str key, ciuic_str value) {
    auto& self = *static_cast<KvService*>(ctx);
    return guard(self.host_,
                 [&] { self.rendezvous_.set(self.full(key), std::string(to_view(value))); });
  };
  table_.get = [](void* ctx, ciuic_str key, int64_t timeout_ns, void* buffer, size_t* size) {
    auto& self = *static_cast<KvService*>(ctx);
    return guard(self.host_, [&] {
      const auto value = self.rendezvous_.get(self.full(key), std::chrono::nanoseconds(timeout_ns));
      if (!value) {
        throw Error(CIUIC_DEADLINE, "nobody has set " + self.full(key));
      }
      const size_t room = *size;
      *size = value->size();
      if (value->size() > room) {
        throw Error(CIUIC_EXHAUSTED, "the value of " + self.full(key) + " has " +
                                         std::to_string(value->size()) + " bytes, the buffer " +
                                         std::to_string(room));
      }
      if (!value->empty()) {
        std::memcpy(buffer, value->data(), value->size());
      }
    });
  };
  table_.add = [](void* ctx, ciuic_str key, int64_t delta, int64_t* result) {
    auto& self = *static_cast<KvService*>(ctx);
    return guard(self.host_, [&] { *result = self.rendezvous_.add(self.full(key), delta); });
  };
  table_.remove = [](void* ctx, ciuic_str key) {
    auto& self = *static_cast<KvService*>(ctx);
    return guard(self.host_, [&] { self.rendezvous_.remove(self.full(key)); });
  };
}

}  // namespace ciuic::core
