// SPDX-License-Identifier: MIT
#include "faulty_io.h"

#include <filesystem>
#include <fstream>

#include <ciuic/view.hpp>

namespace ciuic::test {

// ---- plan ----

void FaultPlan::fail_at(int64_t call, int32_t code, bool is_final) {
  const std::lock_guard lock(mutex_);
  calls_ = 0;
  fail_at_ = call;
  code_ = code;
  is_final_ = is_final;
  has_failed_ = false;
  unsynced_.clear();
}

std::vector<std::string> FaultPlan::log() const {
  const std::lock_guard lock(mutex_);
  return log_;
}

void FaultPlan::clear_log() {
  const std::lock_guard lock(mutex_);
  log_.clear();
}

std::optional<int32_t> FaultPlan::next(const std::string& op, const std::string& path) {
  const std::lock_guard lock(mutex_);
  log_.push_back(op + " " + path);
  ++calls_;
  if (fail_at_ != 0 && (calls_ == fail_at_ || (is_final_ && calls_ > fail_at_))) {
    has_failed_ = true;
    if (op == "write") {
      unsynced_.insert(path);
    }
    return code_;
  }
  if (op == "write") {
    unsynced_.insert(path);
  } else if (op == "sync") {
    unsynced_.erase(path);
  }
  return std::nullopt;
}

void FaultPlan::follow_rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  std::set<std::string> moved;
  for (const std::string& path : unsynced_) {
    const bool is_below = path.compare(0, from.size() + 1, from + "/") == 0;
    moved.insert(path == from || is_below ? to + path.substr(from.size()) : path);
  }
  unsynced_ = std::move(moved);
}

void FaultPlan::zero_unsynced_files() const {
  const std::lock_guard lock(mutex_);
  for (const std::string& path : unsynced_) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    if (!error) {
      std::ofstream(path, std::ios::binary) << std::string(bytes, '\0');
    }
  }
}

// ---- io ----

struct FaultyIo::Calls {
  static FaultyIo& self(void* ctx) { return *static_cast<FaultyIo*>(ctx); }

  static ciuic_status* open(void* ctx, ciuic_str path, uint32_t flags, ciuic_file** out) {
    FaultyIo& io = self(ctx);
    const std::string name(to_view(path));
    if (ciuic_status* status = io.gate((flags & CIUIC_IO_CREATE) != 0 ? "create" : "open", name)) {
      return status;
    }
    ciuic_status* status = io.real_.open(io.real_.ctx, path, flags, out);
    if (status == nullptr) {
      io.paths_[*out] = name;
    }
    return status;
  }
  static ciuic_status* read(void* ctx, ciuic_file* file, uint64_t offset, void* into,
                            size_t bytes) {
    FaultyIo& io = self(ctx);
    ciuic_status* status = io.gate("read", io.paths_.at(file));
    return status != nullptr ? status : io.real_.read(io.real_.ctx, file, offset, into, bytes);
  }
  /// A write that fails has written the first half.
  static ciuic_status* write(void* ctx, ciuic_file* file, uint64_t offset, const void* from,
                             size_t bytes) {
    FaultyIo& io = self(ctx);
    ciuic_status* status = io.gate("write", io.paths_.at(file));
    ciuic_status* real =
        io.real_.write(io.real_.ctx, file, offset, from, status != nullptr ? bytes / 2 : bytes);
    return status != nullptr ? status : real;
  }
  static ciuic_status* size(void* ctx, ciuic_file* file, uint64_t* bytes) {
    FaultyIo& io = self(ctx);
    ciuic_status* status = io.gate("size", io.paths_.at(file));
    return status != nullptr ? status : io.real_.size(io.real_.ctx, file, bytes);
  }
  static ciuic_status* sync(void* ctx, ciuic_file* file) {
    FaultyIo& io = self(ctx);
    ciuic_status* status = io.gate("sync", io.paths_.at(file));
    return status != nullptr ? status : io.real_.sync(io.real_.ctx, file);
  }
  static void close(void* ctx, ciuic_file* file) {
    FaultyIo& io = self(ctx);
    io.paths_.erase(file);
    io.real_.close(io.real_.ctx, file);
  }
  static ciuic_status* rename(void* ctx, ciuic_str from, ciuic_str to) {
    FaultyIo& io = self(ctx);
    const std::string old_name(to_view(from));
    const std::string new_name(to_view(to));
    ciuic_status* status = io.gate("rename", old_name + " " + new_name);
    if (status == nullptr) {
      status = io.real_.rename(io.real_.ctx, from, to);
      if (status == nullptr) {
        io.plan_.follow_rename(old_name, new_name);
      }
    }
    return status;
  }
  static ciuic_status* remove(void* ctx, ciuic_str path, uint32_t recursive) {
    FaultyIo& io = self(ctx);
    ciuic_status* status = io.gate("remove", std::string(to_view(path)));
    return status != nullptr ? status : io.real_.remove(io.real_.ctx, path, recursive);
  }
  static ciuic_status* make_directory(void* ctx, ciuic_str path) {
    FaultyIo& io = self(ctx);
    ciuic_status* status = io.gate("make_directory", std::string(to_view(path)));
    return status != nullptr ? status : io.real_.make_directory(io.real_.ctx, path);
  }
  static ciuic_status* sync_directory(void* ctx, ciuic_str path) {
    FaultyIo& io = self(ctx);
    ciuic_status* status = io.gate("sync_directory", std::string(to_view(path)));
    return status != nullptr ? status : io.real_.sync_directory(io.real_.ctx, path);
  }
  static ciuic_status* list(void* ctx, ciuic_str path, void (*each)(void*, ciuic_str, uint64_t),
                            void* context) {
    FaultyIo& io = self(ctx);
    ciuic_status* status = io.gate("list", std::string(to_view(path)));
    return status != nullptr ? status : io.real_.list(io.real_.ctx, path, each, context);
  }
  static ciuic_status* space(void* ctx, ciuic_str path, uint64_t* bytes) {
    FaultyIo& io = self(ctx);
    ciuic_status* status = io.gate("space", std::string(to_view(path)));
    if (status == nullptr) {
      status = io.real_.space(io.real_.ctx, path, bytes);
      *bytes = io.plan_.space_.value_or(*bytes);
    }
    return status;
  }
};

FaultyIo::FaultyIo(const ciuic_host* host, const ciuic_io_service& real, FaultPlan& plan)
    : host_(host), real_(real), plan_(plan) {
  table_ = {sizeof(table_),
            0,
            this,
            &Calls::open,
            &Calls::read,
            &Calls::write,
            &Calls::size,
            &Calls::sync,
            &Calls::close,
            &Calls::rename,
            &Calls::remove,
            &Calls::make_directory,
            &Calls::sync_directory,
            &Calls::list,
            &Calls::space};
}

ciuic_status* FaultyIo::gate(const std::string& op, const std::string& path) const {
  const auto code = plan_.next(op, path);
  if (!code) {
    return nullptr;
  }
  return host_->status_new(host_->ctx, *code, 0, -1, to_str(op + " " + path + ": injected fault"));
}

}  // namespace ciuic::test
