// SPDX-License-Identifier: MIT
#include "core/train/state_io.h"

#include <span>

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <ciuic/view.hpp>

#include "core/model/initial_values.h"
#include "core/train/tensor_bridge.h"

namespace ciuic::core {
namespace {

constexpr std::string_view kValue = "value/";
constexpr std::string_view kMaster = "master/";

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::vector<int64_t> box_of(const ciuic_place& place) {
  return {place.box, place.box + place.ndim};
}

}  // namespace

// ---- initial values ----

InitialValues::InitialValues(const ModelConfig& config, uint64_t seed)
    : deviation_(config.initializer_range), seed_(seed) {
  for (ParameterSpec& spec : parameter_specs(config)) {
    if (!spec.is_tied()) {
      specs_.emplace(spec.name, std::move(spec));
    }
  }
}

bool InitialValues::read(std::string_view key, const ciuic_place& place, at::Tensor into) const {
  if (!starts_with(key, kValue)) {
    return false;
  }
  const auto found = specs_.find(key.substr(kValue.size()));
  if (found == specs_.end()) {
    return false;
  }
  if (box_of(place) != found->second.shape) {
    throw Error(CIUIC_UNIMPLEMENTED, "initial values of a piece of " + found->first);
  }
  const bool direct = into.is_cpu() && into.scalar_type() == at::kFloat;
  at::Tensor values = direct ? into : at::empty(into.sizes(), at::kFloat);
  fill_initial_values(
      found->second, deviation_, seed_, place.begin,
      std::span(values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())));
  if (!direct) {
    into.copy_(values);
  }
  return true;
}

std::vector<ArchiveEntry> InitialValues::entries() const {
  std::vector<ArchiveEntry> entries;
  for (const auto& [name, spec] : specs_) {
    entries.push_back({std::string(kValue) + name, false, kF32, spec.shape,
                       static_cast<uint64_t>(spec.num_elements()) * sizeof(float)});
  }
  return entries;
}

// ---- archive ----

ArchiveSource::ArchiveSource(const Archive& archive) : archive_(archive), entries_(archive.list()) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    index_.emplace(entries_[i].key, i);
  }
}

const ArchiveEntry* ArchiveSource::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

bool ArchiveSource::read(std::string_view key, const ciuic_place& place, at::Tensor into) const {
  const ArchiveEntry* entry = find(key);
  if (entry == nullptr || entry->is_blob) {
    return false;
  }
  if (entry->shape != box_of(place)) {
    throw Error(CIUIC_INVALID, std::string(key) + ": the file has another shape than the model");
  }
  const at::ScalarType stored = to_scalar_type(entry->dtype);
  const bool direct = into.is_cpu() && into.scalar_type() == stored;
  at::Tensor values = direct ? into : at::empty(into.sizes(), stored);
  const Tensor view = to_abi(values);
  if (!archive_.get(key, place, view.c())) {
    return false;
  }
  if (!direct) {
    into.copy_(values);
  }
  return true;
}

// ---- reader ----

StateSource::StateSource(const ciuic_host* host, const TensorSource& source, std::string prefix)
    : host_(host), source_(source), prefix_(std::move(prefix)), reader_(make_reader(this)) {
  for (ArchiveEntry& entry : source.entries()) {
    if (starts_with(entry.key, prefix_)) {
      entry.key.erase(0, prefix_.size());
      entries_.push_back(std::move(entry));
    }
  }
  abi_entries_ = abi_entries(entries_);
}

bool StateSource::read(std::string_view key, const ciuic_place& place,
                       const at::Tensor& into) const {
  if (source_.read(prefix_ + std::string(key), place, into)) {
    return true;
  }
  // A policy with separate masters reads what one without wrote, and the other way round.
  if (starts_with(key, kMaster)) {
    return source_.read(std::string(kValue) + std::string(key.substr(kMaster.size())), place, into);
  }
  if (starts_with(key, kValue)) {
    return source_.read(std::string(kMaster) + std::string(key.substr(kValue.size())), place, into);
  }
  return false;
}

ciuic_reader StateSource::make_reader(StateSource* self) {
  ciuic_reader r{};
  r.struct_size = sizeof(r);
  r.ctx = self;
  r.schema = 1;
  r.list = [](void* ctx, ciuic_array* out) {
    *out = to_array(static_cast<StateSource*>(ctx)->abi_entries_);
    return static_cast<ciuic_status*>(nullptr);
  };
  r.blob = [](void* ctx, ciuic_str key, const void** data, size_t* size) {
    auto* me = static_cast<StateSource*>(ctx);
    return guard(me->host_, [&] {
      const auto bytes = me->source_.blob(me->prefix_ + std::string(to_view(key)));
      if (!bytes) {
        throw Error(CIUIC_NOT_FOUND, "no blob " + std::string(to_view(key)));
      }
      me->blob_ = *bytes;
      *data = me->blob_.data();
      *size = me->blob_.size();
    });
  };
  r.tensor = [](void* ctx, ciuic_str key, const ciuic_place* place, const ciuic_tensor* into,
                const ciuic_stream*, ciuic_work** work) {
    auto* me = static_cast<StateSource*>(ctx);
    *work = nullptr;
    return guard(me->host_, [&] {
      const c10::InferenceMode no_autograd;
      try {
        if (me->read(to_view(key), *place, to_torch(*into))) {
          return;
        }
      } catch (const Failure& failure) {
        me->failure_ = failure;
        throw;
      }
      throw Error(CIUIC_NOT_FOUND, "no tensor " + std::string(to_view(key)));
    });
  };
  return r;
}

// ---- writer ----

StateSink::StateSink(const ciuic_host* host, Put put, Blob blob)
    : host_(host), put_(std::move(put)), blob_(std::move(blob)), writer_(make_writer(this)) {}

template <typename Body>
ciuic_status* StateSink::run(Body&& body) {
  return guard(host_, [&] {
    try {
      body();
    } catch (const Failure& failure) {
      failure_ = failure;
      throw;
    }
  });
}

ciuic_writer StateSink::make_writer(StateSink* self) {
  ciuic_writer w{};
  w.struct_size = sizeof(w);
  w.ctx = self;
  w.blob = [](void* ctx, ciuic_str key, const void* data, size_t size) {
    auto* me = static_cast<StateSink*>(ctx);
    return me->run([&] { me->blob_(to_view(key), {static_cast<const char*>(data), size}); });
  };
  w.tensor = [](void* ctx, ciuic_str key, const ciuic_place* place, const ciuic_tensor* tensor,
                const ciuic_stream*) {
    auto* me = static_cast<StateSink*>(ctx);
    return me->run([&] { me->put_(to_view(key), *place, *tensor); });
  };
  return w;
}

// ---- both ----

namespace {

/// Runs a plugin's call; what went wrong in our own callback is thrown in place of what the plugin
/// made of it.
template <typename Side, typename Call>
void with_own_failure(const Side& side, Call&& call) {
  try {
    call();
  } catch (const Failure&) {
    if (side.failure()) {
      throw *side.failure();
    }
    throw;
  }
}

}  // namespace

void load_state(const Instance& instance, const TensorSource& source, const std::string& prefix) {
  const StateSource from(instance.host(), source, prefix);
  with_own_failure(from, [&] { instance.state_load(from.reader()); });
}

void save_state(const Instance& instance, const StateSink::Put& put, const StateSink::Blob& blob) {
  const StateSink sink(instance.host(), put, blob);
  with_own_failure(sink, [&] { instance.state_save(sink.writer()); });
}

}  // namespace ciuic::core
