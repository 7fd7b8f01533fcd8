// SPDX-License-Identifier: MIT
//
// "ciuic.io" of one rank over a FileStore, with a plan of what goes wrong. Needs no disk with
// MemoryFiles.
//
//   MemoryFiles files;
//   IoPlan plan;
//   ReferenceIo io(host.host(), files, plan);
//   host.offer("ciuic.io", io.table());
#pragma once

#include <memory>
#include <string>

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>
#include <ciuic/testing/file_store.hpp>
#include <ciuic/testing/io_plan.hpp>

namespace ciuic::testing {

class ReferenceIo {
 public:
  ReferenceIo(Host host, FileStore& files, IoPlan& plan) : host_(host), files_(files), plan_(plan) {
    table_.struct_size = sizeof(table_);
    table_.ctx = this;
    fill_files();
    fill_names();
  }
  ReferenceIo(const ReferenceIo&) = delete;
  ReferenceIo& operator=(const ReferenceIo&) = delete;

  [[nodiscard]] const ciuic_io_service* table() const noexcept { return &table_; }

 private:
  struct Handle {
    std::unique_ptr<FileStore::File> file;
    std::string path;
  };
  static ReferenceIo& from(void* ctx) { return *static_cast<ReferenceIo*>(ctx); }
  static Handle& from(ciuic_file* file) { return *reinterpret_cast<Handle*>(file); }
  static std::string text(ciuic_str s) { return std::string(to_view(s)); }

  template <typename Body>
  ciuic_status* call(const char* op, const std::string& path, Body&& body) {
    return guard(host_, [&] { plan_.pass({op, path}, body); });
  }

  void fill_files() {
    table_.open = [](void* ctx, ciuic_str path, uint32_t flags, ciuic_file** out) {
      *out = nullptr;
      const char* op = (flags & CIUIC_IO_CREATE) != 0 ? "create" : "open";
      return from(ctx).call(op, text(path), [&] {
        auto handle = std::make_unique<Handle>();
        handle->path = text(path);
        handle->file = from(ctx).files_.open(handle->path, flags);
        *out = reinterpret_cast<ciuic_file*>(handle.release());
      });
    };
    table_.read = [](void* ctx, ciuic_file* file, uint64_t offset, void* into, size_t bytes) {
      return from(ctx).call("read", from(file).path, [&] {
        from(file).file->read(offset, static_cast<char*>(into), bytes);
      });
    };
    table_.write = [](void* ctx, ciuic_file* file, uint64_t offset, const void* data,
                      size_t bytes) {
      const auto write = [&](size_t size) {
        from(file).file->write(offset, static_cast<const char*>(data), size);
      };
      return guard(from(ctx).host_, [&] {
        from(ctx).plan_.pass(
            {"write", from(file).path}, [&] { write(bytes); }, [&] { write(bytes / 2); });
      });
    };
    table_.size = [](void* ctx, ciuic_file* file, uint64_t* bytes) {
      return from(ctx).call("size", from(file).path, [&] { *bytes = from(file).file->size(); });
    };
    table_.sync = [](void* ctx, ciuic_file* file) {
      return from(ctx).call("sync", from(file).path, [&] { from(file).file->sync(); });
    };
    table_.close = [](void*, ciuic_file* file) { delete &from(file); };
  }

  void fill_names() {
    table_.rename = [](void* ctx, ciuic_str old_name, ciuic_str new_name) {
      return from(ctx).call("rename", text(old_name) + " -> " + text(new_name),
                            [&] { from(ctx).files_.rename(text(old_name), text(new_name)); });
    };
    table_.remove = [](void* ctx, ciuic_str path, uint32_t recursive) {
      return from(ctx).call("remove", text(path),
                            [&] { from(ctx).files_.remove(text(path), recursive != 0); });
    };
    table_.make_directory = [](void* ctx, ciuic_str path) {
      return from(ctx).call("make_directory", text(path),
                            [&] { from(ctx).files_.make_directory(text(path)); });
    };
    table_.sync_directory = [](void* ctx, ciuic_str path) {
      return from(ctx).call("sync_directory", text(path),
                            [&] { from(ctx).files_.sync_directory(text(path)); });
    };
    table_.list = [](void* ctx, ciuic_str path, void (*each)(void*, ciuic_str, uint64_t),
                     void* context) {
      return from(ctx).call("list", text(path), [&] {
        from(ctx).files_.list(text(path), [&](const std::string& name, uint64_t bytes) {
          each(context, to_str(name), bytes);
        });
      });
    };
    table_.space = [](void* ctx, ciuic_str path, uint64_t* bytes) {
      return from(ctx).call("space", text(path),
                            [&] { *bytes = from(ctx).files_.space(text(path)); });
    };
  }

  Host host_;
  FileStore& files_;
  IoPlan& plan_;
  ciuic_io_service table_{};
};

}  // namespace ciuic::testing
