// SPDX-License-Identifier: MIT
#include <algorithm>

#include "deferred_work.h"
#include "shelf.h"

namespace ciuic::mutants::checkpoint {

ShelfSave::ShelfSave(const Host& host, Habits habits, const Team& team,
                     const ciuic_save_request& request)
    : Archive(host),
      habits_(habits),
      folder_(host, habits),
      team_(team),
      uri_(to_view(request.uri)),
      step_(request.step) {
  int32_t code = 0;
  try {
    prepare();
  } catch (const Error& e) {
    code = e.code();
  }
  team_.agree(code);
}

void ShelfSave::prepare() {
  if (uri_.find_last_not_of('/') == std::string::npos || uri_.back() == '/') {
    throw Error(CIUIC_INVALID, "shelf: \"" + uri_ + "\" can be no checkpoint");
  }
  if (habits_.is_alone && team_.size() > 1) {
    throw Error(CIUIC_UNIMPLEMENTED, "shelf: one rank only");
  }
  if (team_.rank() != 0) {
    return;
  }
  std::vector<std::string> names;
  const bool is_taken = habits_.is_one_file ? folder_.list(uri_, names)
                                            : folder_.is_file(uri_) || folder_.list(uri_, names);
  if (is_taken && !habits_.replaces_by_removing) {
    throw Error(CIUIC_EXISTS, "shelf: " + uri_ + " is there");
  }
  folder_.remove(aside());
  if (!habits_.is_one_file) {
    folder_.make(aside());
  }
}

ShelfSave::~ShelfSave() {
  if (thread_.joinable()) {
    thread_.join();
  }
  if (is_committed_ || team_.rank() != 0 || !habits_.cleans_on_close) {
    return;
  }
  try {
    folder_.remove(aside());
  } catch (const Error& e) {
    host().warn(e.what());
  }
}

void ShelfSave::check_key(std::string_view key) const {
  if (key.empty() || key.find('\0') != std::string_view::npos) {
    throw Error(CIUIC_INVALID, "shelf: an empty key, or one with a NUL");
  }
}

Work ShelfSave::put(std::string_view key, const ciuic_place& place, const ciuic_tensor& tensor,
                    const ciuic_stream*) {
  check_key(key);
  const bool is_narrow = same(tensor.t.dtype, kF32) || same(tensor.t.dtype, kBF16);
  if (habits_.is_alone && (!is_narrow || key.substr(0, 6) != "value/")) {
    throw Error(CIUIC_UNIMPLEMENTED, "shelf: f32 and bf16 parameters only");
  }
  if (habits_.is_one_file && team_.rank() != 0) {
    throw Error(CIUIC_UNIMPLEMENTED, "shelf: rank 0 puts all");
  }
  auto record = std::make_shared<Record>(describe(key, place, tensor));
  if (!habits_.places_ranks_right && team_.rank() > 0 && record->begin > 0) {
    --record->begin;
  }
  records_.push_back(record);
  if (!habits_.works_in_wait) {
    record->bytes = gather(tensor);
    if (!habits_.copies_sources) {
      sources_[record.get()] = tensor;
    }
    return {};
  }
  // The tensor's struct may be gone when the work runs; its data is not.
  struct Source {
    ciuic_tensor tensor;
    std::vector<int64_t> shape, strides;
  };
  auto source = std::make_shared<Source>();
  source->tensor = tensor;
  source->shape.assign(tensor.t.shape, tensor.t.shape + tensor.t.ndim);
  source->strides.assign(tensor.t.strides, tensor.t.strides + tensor.t.ndim);
  source->tensor.t.shape = source->shape.data();
  source->tensor.t.strides = source->strides.data();
  pending_.push_back(
      DeferredWork::make(host(), [record, source] { record->bytes = gather(source->tensor); }));
  return pending_.back();
}

void ShelfSave::put_blob(std::string_view key, std::string_view bytes) {
  check_key(key);
  if (habits_.is_alone && key != "config.json") {
    throw Error(CIUIC_UNIMPLEMENTED, "shelf: no blob but config.json");
  }
  auto record = std::make_shared<Record>();
  record->key = key;
  record->is_blob = true;
  record->bytes = bytes;
  records_.push_back(std::move(record));
}

Work ShelfSave::commit() {
  for (const Work& work : pending_) {
    work.wait(host());
  }
  if (!habits_.commits_in_thread) {
    run_commit();
    return {};
  }
  const Completion done(host());
  thread_ = std::thread([this, done] {
    try {
      run_commit();
      done.finish();
    } catch (const Error& e) {
      done.fail(e);
    }
  });
  return done.work();
}

void ShelfSave::run_commit() {
  for (const auto step : {&ShelfSave::write_part, &ShelfSave::publish}) {
    int32_t code = 0;
    std::string why;
    try {
      (this->*step)();
    } catch (const Error& e) {
      code = e.code();
      why = e.what();
    }
    try {
      team_.agree(code);
    } catch (const Error& e) {
      throw Error(e.code(), why.empty() ? e.what() : why);
    }
  }
  is_committed_ = true;
}

void ShelfSave::write_part() {
  std::vector<Record> records;
  for (const auto& record : records_) {
    const auto source = sources_.find(record.get());
    if (source != sources_.end()) {  // the fault: what lies there now, at the old address
      const void* data = tensor_data(source->second);
      record->bytes.assign(static_cast<const char*>(data), record->bytes.size());
    }
    records.push_back(*record);
  }
  const std::string bytes = encode(records, step_);
  if (habits_.is_one_file) {
    if (team_.rank() == 0) {
      folder_.make(parent_of(uri_));
      folder_.write(aside(), bytes);
    }
    return;
  }
  for (const auto& record : records_) {
    if (habits_.keys_as_paths) {
      const std::string path = aside() + "/" + record->key;
      folder_.make(parent_of(path));
      folder_.write(path, record->bytes);
    }
  }
  folder_.write(aside() + "/part-" + std::to_string(team_.rank()), bytes);
}

void ShelfSave::publish() {
  if (team_.rank() != 0) {
    return;
  }
  if (!habits_.is_one_file) {
    std::string manifest = "shelf 1\n";
    for (int r = 0; r < team_.size(); ++r) {
      const std::string part = folder_.read(aside() + "/part-" + std::to_string(r));
      manifest += std::to_string(checksum(part)) + "\n";
    }
    manifest += "end " + std::to_string(checksum(manifest)) + "\n";
    folder_.write(aside() + "/manifest", manifest);
    folder_.sync(aside());
  }
  if (habits_.replaces_by_removing) {
    folder_.remove(uri_);
  }
  folder_.rename(aside(), uri_);
  folder_.sync(parent_of(uri_));
}

}  // namespace ciuic::mutants::checkpoint
