// SPDX-License-Identifier: MIT
#include "folder.h"

#include <algorithm>
#include <memory>

namespace ciuic::mutants::checkpoint {

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

Folder::Folder(const Host& host, Habits habits)
    : host_(host), habits_(habits), io_(&host.service<ciuic_io_service>("ciuic.io")) {}

void Folder::write(const std::string& path, std::string_view bytes) const {
  ciuic_file* file = nullptr;
  host_.check(io_->open(io_->ctx, to_str(path), CIUIC_IO_CREATE, &file));
  const auto close = [this](ciuic_file* f) { io_->close(io_->ctx, f); };
  const std::unique_ptr<ciuic_file, decltype(close)> closer(file, close);
  ciuic_status* status = io_->write(io_->ctx, file, 0, bytes.data(), bytes.size());
  if (status != nullptr && !habits_.reports_write_errors) {
    (void)host_.take(status);
    return;
  }
  host_.check(status);
  if (habits_.syncs_files) {
    host_.check(io_->sync(io_->ctx, file));
  }
}

std::string Folder::read(const std::string& path) const {
  ciuic_file* file = nullptr;
  host_.check(io_->open(io_->ctx, to_str(path), CIUIC_IO_READ, &file));
  const auto close = [this](ciuic_file* f) {
    if (habits_.closes_files) {
      io_->close(io_->ctx, f);
    }
  };
  const std::unique_ptr<ciuic_file, decltype(close)> closer(file, close);
  uint64_t size = 0;
  host_.check(io_->size(io_->ctx, file, &size));
  std::string bytes(size, '\0');
  host_.check(io_->read(io_->ctx, file, 0, bytes.data(), bytes.size()));
  return bytes;
}

void Folder::rename(const std::string& from, const std::string& to) const {
  host_.check(io_->rename(io_->ctx, to_str(from), to_str(to)));
}

void Folder::make(const std::string& path) const {
  host_.check(io_->make_directory(io_->ctx, to_str(path)));
}

void Folder::sync(const std::string& path) const {
  if (habits_.syncs_folders) {
    host_.check(io_->sync_directory(io_->ctx, to_str(path)));
  }
}

bool Folder::remove(const std::string& path) const {
  ciuic_status* status = io_->remove(io_->ctx, to_str(path), 1);
  if (status == nullptr) {
    return true;
  }
  Error error = host_.take(status);
  if (error.code() != CIUIC_NOT_FOUND) {
    throw error;
  }
  return false;
}

bool Folder::is_file(const std::string& path) const {
  ciuic_file* file = nullptr;
  ciuic_status* status = io_->open(io_->ctx, to_str(path), CIUIC_IO_READ, &file);
  if (status != nullptr) {
    Error error = host_.take(status);
    std::vector<std::string> names;
    if (error.code() != CIUIC_NOT_FOUND && !list(path, names)) {
      throw error;
    }
    return false;
  }
  io_->close(io_->ctx, file);
  return true;
}

bool Folder::list(const std::string& path, std::vector<std::string>& names) const {
  const auto each = [](void* context, ciuic_str name, uint64_t) {
    static_cast<std::vector<std::string>*>(context)->emplace_back(to_view(name));
  };
  ciuic_status* status = io_->list(io_->ctx, to_str(path), each, &names);
  if (status == nullptr) {
    return true;
  }
  Error error = host_.take(status);
  if (error.code() != CIUIC_NOT_FOUND) {
    throw error;
  }
  return false;
}

Team::Team(const Host& host, bool is_for_threads) : host_(host) {
  const auto* comm = host.find_service<ciuic_comm_service>("ciuic.comm");
  if (comm == nullptr) {
    return;
  }
  const ciuic_group* group = nullptr;
  host.check(comm->find(comm->ctx, to_str("control"), &group));
  if (group->size == 1) {
    return;
  }
  if (is_for_threads) {
    std::vector<int32_t> all;
    for (int32_t r = 0; r < group->size; ++r) {
      all.push_back(r);
    }
    ciuic_split split{};
    split.struct_size = sizeof(split);
    split.ranks = all.data();
    split.count = static_cast<uint32_t>(all.size());
    split.name = to_str("shelf");
    host.check(comm->split(comm->ctx, group->id, &split, &group));
  }
  group_ = group;
  rank_ = group_->rank;
  size_ = group_->size;
}

void Team::agree(int32_t code) const {
  int64_t worst = code;
  if (group_ != nullptr) {
    const Tensor tensor(&worst, kI64, {1});
    ciuic_collective c{};
    c.struct_size = sizeof(c);
    c.op = CIUIC_OP_ALL_REDUCE;
    c.reduce = CIUIC_REDUCE_MAX;
    c.timeout_ns = 60'000'000'000;
    c.in = c.out = tensor.ptr();
    ciuic_work* work = nullptr;
    host_.check(group_->vt->submit(group_->self, {&c, 1, sizeof(c)}, nullptr, &work));
    Work(work).wait(host_);
  }
  if (worst != 0) {
    throw Error(static_cast<int32_t>(worst), "shelf: a rank failed");
  }
}

}  // namespace ciuic::mutants::checkpoint
