// SPDX-License-Identifier: MIT
#include "core/plugin/checkpoint.h"

#include <ciuic/host.hpp>
#include <ciuic/work.hpp>

#include "core/plugin/shown_array.h"

namespace ciuic::core {

std::vector<ciuic_entry> abi_entries(const std::vector<ArchiveEntry>& entries) {
  std::vector<ciuic_entry> raw;
  raw.reserve(entries.size());
  for (const ArchiveEntry& e : entries) {
    ciuic_entry c{};
    c.struct_size = sizeof(c);
    c.flags = e.is_blob ? CIUIC_ENTRY_BLOB : 0;
    c.key = to_str(e.key);
    c.dtype = e.dtype;
    c.ndim = static_cast<int32_t>(e.shape.size());
    c.global_shape = e.shape.data();
    c.bytes = e.bytes;
    raw.push_back(c);
  }
  return raw;
}

// ---- archive ----

Archive::~Archive() {
  if (handle_ != nullptr) {
    plugin_->vt().close(handle_);
  }
}

void Archive::check(ciuic_status* status, const char* op) const {
  try {
    plugin_->instance_.check(status, op);
  } catch (Failure& failure) {
    failure.with("file", uri_);
    throw;
  }
}

bool Archive::check_found(ciuic_status* status, const char* op) const {
  if (status != nullptr) {
    const ciuic_host* host = plugin_->instance_.host();
    if (host->status_get(host->ctx, status, nullptr, nullptr, nullptr) == CIUIC_NOT_FOUND) {
      host->status_free(host->ctx, status);
      return false;
    }
  }
  check(status, op);
  return true;
}

void Archive::wait(ciuic_work* work, const char* op) const {
  if (const Work owned(work); owned) {
    check(work->ops->wait(work, -1), op);
  }
}

void Archive::put(std::string_view key, const ciuic_place& place,
                  const ciuic_tensor& tensor) const {
  ciuic_work* work = nullptr;
  check(plugin_->vt().put(handle_, to_str(key), &place, &tensor, nullptr, &work), "checkpoint.put");
  wait(work, "checkpoint.put");
}

void Archive::put_blob(std::string_view key, std::string_view bytes) const {
  check(plugin_->vt().put_blob(handle_, to_str(key), bytes.data(), bytes.size()),
        "checkpoint.put_blob");
}

void Archive::commit() const {
  ciuic_work* work = nullptr;
  check(plugin_->vt().commit(handle_, &work), "checkpoint.commit");
  wait(work, "checkpoint.commit");
}

std::vector<ArchiveEntry> Archive::list() const {
  ciuic_array raw{};
  check(plugin_->vt().list(handle_, &raw), "checkpoint.list");
  std::vector<ArchiveEntry> entries;
  for (const ciuic_entry& e :
       shown_array<ciuic_entry>(raw, plugin_->instance(), "checkpoint.list")) {
    entries.push_back({std::string(to_view(e.key)),
                       (e.flags & CIUIC_ENTRY_BLOB) != 0,
                       e.dtype,
                       {e.global_shape, e.global_shape + e.ndim},
                       e.bytes});
  }
  return entries;
}

void Archive::verify(std::string_view key) const {
  check(plugin_->vt().verify(handle_, to_str(key)), "checkpoint.verify");
}

bool Archive::get(std::string_view key, const ciuic_place& place, const ciuic_tensor& into) const {
  ciuic_work* work = nullptr;
  if (!check_found(plugin_->vt().get(handle_, to_str(key), &place, &into, nullptr, &work),
                   "checkpoint.get")) {
    return false;
  }
  wait(work, "checkpoint.get");
  return true;
}

std::optional<std::string> Archive::get_blob(std::string_view key) const {
  const void* data = nullptr;
  size_t size = 0;
  if (!check_found(plugin_->vt().get_blob(handle_, to_str(key), &data, &size),
                   "checkpoint.get_blob")) {
    return std::nullopt;
  }
  return std::string(static_cast<const char*>(data), size);
}

// ---- plugin ----

Archive CheckpointPlugin::begin(const std::string& uri, uint64_t step,
                                const std::vector<ArchiveEntry>& entries) const {
  const std::vector<ciuic_entry> raw = abi_entries(entries);
  ciuic_save_request request{};
  request.struct_size = sizeof(request);
  request.uri = to_str(uri);
  request.step = step;
  request.entries = to_array(raw);
  ciuic_archive* handle = nullptr;
  instance_.check(vt().begin(instance_.self(), &request, &handle), "checkpoint.begin");
  return Archive(*this, handle, uri);
}

std::optional<Archive> CheckpointPlugin::open(const std::string& uri) const {
  ciuic_open_request request{};
  request.struct_size = sizeof(request);
  request.uri = to_str(uri);
  ciuic_archive* handle = nullptr;
  if (ciuic_status* status = vt().open(instance_.self(), &request, &handle); status != nullptr) {
    const ciuic_host* host = instance_.host();
    if (host->status_get(host->ctx, status, nullptr, nullptr, nullptr) == CIUIC_UNIMPLEMENTED) {
      host->status_free(host->ctx, status);
      return std::nullopt;
    }
    instance_.check(status, "checkpoint.open");
  }
  return Archive(*this, handle, uri);
}

void CheckpointPlugin::remove(const std::string& uri) const {
  if (CIUIC_CAN(&vt(), remove)) {
    instance_.check(vt().remove(instance_.self(), to_str(uri)), "checkpoint.remove");
  }
}

}  // namespace ciuic::core
