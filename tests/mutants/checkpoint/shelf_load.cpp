// SPDX-License-Identifier: MIT
//
// Reads all of a checkpoint at open, compares every checksum, and keeps it.
#include <algorithm>
#include <cstring>
#include <sstream>

#include "deferred_work.h"
#include "shelf.h"

namespace ciuic::mutants::checkpoint {
namespace {

[[noreturn]] void damaged(const std::string& what) {
  throw Error(CIUIC_DATA_LOSS, "shelf: " + what + " is damaged");
}

int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) {
    n *= d;
  }
  return n;
}

}  // namespace

ShelfLoad::ShelfLoad(const Host& host, Habits habits, std::string_view uri)
    : Archive(host), habits_(habits), folder_(host, habits) {
  const std::string path(uri);
  habits_.is_one_file ? open_file(path) : open_folder(path);
  for (auto& [key, r] : whole_) {
    ciuic_entry e{};
    e.struct_size = sizeof(e);
    e.flags = r.is_blob ? CIUIC_ENTRY_BLOB : 0;
    e.key = to_str(key);
    e.bytes = r.bytes.size();
    if (!r.is_blob) {
      e.dtype = r.dtype;
      e.ndim = static_cast<int32_t>(r.shape.size());
      e.global_shape = r.shape.data();
    }
    listed_.push_back(e);
  }
  if (!habits_.lists_all && !listed_.empty()) {
    listed_.pop_back();
  }
}

void ShelfLoad::open_file(const std::string& uri) {
  std::vector<std::string> names;
  if (folder_.list(uri, names)) {
    throw Error(CIUIC_UNIMPLEMENTED, "shelf: " + uri + " is a folder");
  }
  const std::string bytes = folder_.read(uri);
  if (bytes.compare(0, 8, "SHELFv1\n") != 0) {
    throw Error(CIUIC_UNIMPLEMENTED, "shelf: " + uri + " is no shelf");
  }
  add_part(bytes, checksum(bytes));
}

void ShelfLoad::open_folder(const std::string& uri) {
  std::vector<std::string> names;
  if (!folder_.list(uri, names)) {
    throw folder_.is_file(uri) ? Error(CIUIC_UNIMPLEMENTED, "shelf: " + uri + " is a file")
                               : Error(CIUIC_NOT_FOUND, "shelf: " + uri + " is not there");
  }
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!has("manifest")) {
    throw Error(has("part-0") || habits_.opens_anything ? CIUIC_DATA_LOSS : CIUIC_UNIMPLEMENTED,
                "shelf: " + uri + " has no manifest");
  }
  const std::string text = folder_.read(uri + "/manifest");
  const size_t end = text.rfind("end ");
  if (end == std::string::npos ||
      text.substr(end) != "end " + std::to_string(checksum(text.substr(0, end))) + "\n" ||
      text.compare(0, 8, "shelf 1\n") != 0) {
    damaged(uri + "/manifest");
  }
  std::istringstream sums(text.substr(8, end - 8));
  uint64_t sum = 0;
  for (int r = 0; sums >> sum; ++r) {
    const std::string name = "part-" + std::to_string(r);
    if (!has(name.c_str())) {
      damaged(uri + "/" + name);
    }
    add_part(folder_.read(uri + "/" + name), sum);
  }
}

void ShelfLoad::add_part(const std::string& bytes, uint64_t expected) {
  if (bytes.size() < 24) {
    damaged("a part");
  }
  const uint64_t own = checksum(std::string_view(bytes).substr(0, bytes.size() - 8));
  if (habits_.compares_checksums && (own != stored_checksum(bytes) ||
                                     (habits_.compares_manifest && checksum(bytes) != expected))) {
    damaged("a part");
  }
  for (Record& r : decode(bytes)) {
    if (r.is_blob) {
      whole_[r.key] = std::move(r);
      continue;
    }
    const int64_t width = dtype_bytes(r.dtype);
    Record& all = whole_.emplace(r.key, r).first->second;
    all.bytes.resize(static_cast<size_t>(elements_of(r.shape) * width));
    for (int64_t i = 0; i < r.count; ++i) {
      const int64_t at = global_index(r.shape, r.offset.data(), r.box.data(), r.begin + i);
      std::memcpy(&all.bytes[static_cast<size_t>(at * width)],
                  &r.bytes[static_cast<size_t>(i * width)], static_cast<size_t>(width));
    }
  }
}

const Record& ShelfLoad::find(std::string_view key) const {
  const auto found = whole_.find(key);
  if (found == whole_.end()) {
    throw Error(CIUIC_NOT_FOUND, "shelf: no " + std::string(key));
  }
  return found->second;
}

Work ShelfLoad::get(std::string_view key, const ciuic_place& place, const ciuic_tensor& into,
                    const ciuic_stream*) {
  const Record& stored = find(key);
  const Record wanted = describe(key, place, into);
  if (stored.is_blob || wanted.shape != stored.shape ||
      (habits_.checks_type && !same(wanted.dtype, stored.dtype))) {
    throw Error(CIUIC_INVALID, "shelf: " + std::string(key) + " is of another type or shape");
  }
  struct Target {
    ciuic_tensor tensor;
    std::vector<int64_t> shape, strides;
  };
  auto target = std::make_shared<Target>();
  target->tensor = into;
  target->shape.assign(into.t.shape, into.t.shape + into.t.ndim);
  target->strides.assign(into.t.strides, into.t.strides + into.t.ndim);
  target->tensor.t.shape = target->shape.data();
  target->tensor.t.strides = target->strides.data();
  const auto copy = [&stored, wanted, target] {
    const int64_t width = dtype_bytes(wanted.dtype);
    for (int64_t i = 0; i < wanted.count; ++i) {
      const int64_t at =
          global_index(wanted.shape, wanted.offset.data(), wanted.box.data(), wanted.begin + i);
      std::memcpy(element_at(target->tensor, i), &stored.bytes[static_cast<size_t>(at * width)],
                  static_cast<size_t>(width));
    }
  };
  if (habits_.works_in_wait) {
    return DeferredWork::make(host(), copy);
  }
  copy();
  return {};
}

std::string_view ShelfLoad::get_blob(std::string_view key) {
  const Record& stored = find(key);
  if (!stored.is_blob) {
    throw Error(CIUIC_INVALID, "shelf: " + std::string(key) + " is a tensor");
  }
  return stored.bytes;
}

// ---- plugin ----

Shelf::Shelf(const Context& context, Habits habits)
    : Checkpoint(context), habits_(habits), team_(context.host(), habits.commits_in_thread) {}

std::unique_ptr<Archive> Shelf::begin(const ciuic_save_request& request) {
  return std::make_unique<ShelfSave>(host(), habits_, team_, request);
}

std::unique_ptr<Archive> Shelf::open(std::string_view uri) {
  return std::make_unique<ShelfLoad>(host(), habits_, uri);
}

void Shelf::remove(std::string_view uri) {
  const std::string path(uri);
  (void)open(uri);  // only what this plugin can read
  const Folder folder(host(), habits_);
  folder.rename(path, path + ".aside");
  folder.sync(parent_of(path));
  folder.remove(path + ".aside");
}

}  // namespace ciuic::mutants::checkpoint
