// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/recorded_state.h"

#include "core/plugin/decorator/codec.h"

namespace ciuic::core {

// ---- while it happens ----

RecordedState::RecordedState(const ciuic_reader& inner) : inner_(inner), reader_(inner) {
  reader_.ctx = this;
  reader_.list = &RecordedState::list;
  reader_.blob = &RecordedState::blob;
  reader_.tensor = &RecordedState::tensor;
}

ciuic_status* RecordedState::list(void* ctx, ciuic_array* entries) {
  const ciuic_reader& inner = static_cast<RecordedState*>(ctx)->inner_;
  return inner.list(inner.ctx, entries);
}

ciuic_status* RecordedState::blob(void* ctx, ciuic_str key, const void** data, size_t* size) {
  auto* me = static_cast<RecordedState*>(ctx);
  ciuic_status* status = me->inner_.blob(me->inner_.ctx, key, data, size);
  if (status == nullptr) {
    me->blobs_[std::string(to_view(key))] =
        *size == 0 ? std::string() : std::string(static_cast<const char*>(*data), *size);
  }
  return status;
}

ciuic_status* RecordedState::tensor(void* ctx, ciuic_str key, const ciuic_place* place,
                                    const ciuic_tensor* into, const ciuic_stream* stream,
                                    ciuic_work** work) {
  auto* me = static_cast<RecordedState*>(ctx);
  me->has_tensors_ = true;
  return me->inner_.tensor(me->inner_.ctx, key, place, into, stream, work);
}

LogValue RecordedState::value() const {
  LogValue::List blobs;
  for (const auto& [key, bytes] : blobs_) {
    blobs.push_back({LogValue::List{{key}, {bytes}}});
  }
  LogValue::List all{{std::string(to_view(inner_.plugin))},
                     {uint64_t{inner_.schema}},
                     {std::move(blobs)},
                     {uint64_t{has_tensors_}}};
  return {std::move(all), "plugin,schema,blobs,has_tensors"};
}

// ---- again ----

ReplayedState::ReplayedState(const LogValue& value, const ciuic_host* host) : host_(host) {
  const auto& list = Decoder::get<LogValue::List>(value);
  Decoder::check(list.size() == 4, "a state has another number of members");
  if (Decoder::get<uint64_t>(list[3]) != 0) {
    throw LogIncomplete("the state that was loaded has tensors");
  }
  plugin_ = Decoder::get<std::string>(list[0]);
  for (const LogValue& blob : Decoder::get<LogValue::List>(list[2])) {
    const auto& pair = Decoder::get<LogValue::List>(blob);
    Decoder::check(pair.size() == 2, "a blob has another number of members");
    blobs_[Decoder::get<std::string>(pair[0])] = Decoder::get<std::string>(pair[1]);
  }
  for (const auto& [key, bytes] : blobs_) {
    ciuic_entry e{};
    e.struct_size = sizeof(e);
    e.flags = CIUIC_ENTRY_BLOB;
    e.key = to_str(key);
    e.bytes = bytes.size();
    entries_.push_back(e);
  }
  reader_.struct_size = sizeof(reader_);
  reader_.ctx = this;
  reader_.plugin = to_str(plugin_);
  reader_.schema = Decoder::get<uint64_t>(list[1]);
  reader_.list = [](void* ctx, ciuic_array* out) {
    *out = to_array(static_cast<ReplayedState*>(ctx)->entries_);
    return static_cast<ciuic_status*>(nullptr);
  };
  reader_.blob = [](void* ctx, ciuic_str key, const void** data, size_t* size) {
    auto* me = static_cast<ReplayedState*>(ctx);
    const auto found = me->blobs_.find(std::string(to_view(key)));
    if (found == me->blobs_.end()) {
      return me->host_->status_new(me->host_->ctx, CIUIC_NOT_FOUND, 0, -1,
                                   to_str("the log has no such blob"));
    }
    *data = found->second.data();
    *size = found->second.size();
    return static_cast<ciuic_status*>(nullptr);
  };
  reader_.tensor = [](void* ctx, ciuic_str, const ciuic_place*, const ciuic_tensor*,
                      const ciuic_stream*, ciuic_work**) {
    auto* me = static_cast<ReplayedState*>(ctx);
    return me->host_->status_new(me->host_->ctx, CIUIC_NOT_FOUND, 0, -1,
                                 to_str("the log has no tensors of a state"));
  };
}

}  // namespace ciuic::core
