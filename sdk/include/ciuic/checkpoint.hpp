// SPDX-License-Identifier: MIT
//
// Base classes of checkpoint plugins. The contract is in ciuic/abi/checkpoint.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/plugin.hpp>

namespace ciuic {

/// One checkpoint being written or read; a class that does one of the two leaves the other's hooks
/// alone.
class Archive {
 public:
  explicit Archive(const Host& host) : host_(host) {}
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;
  /// close: without a finished commit, cancel and leave nothing.
  virtual ~Archive() = default;

  [[nodiscard]] const Host& host() const noexcept { return host_; }

  virtual Work put(std::string_view /*key*/, const ciuic_place&, const ciuic_tensor&,
                   const ciuic_stream*) {
    reading();
  }
  virtual void put_blob(std::string_view /*key*/, std::string_view /*bytes*/) { reading(); }
  virtual Work commit() { reading(); }

  virtual const std::vector<ciuic_entry>& list() { writing(); }
  virtual void verify(std::string_view /*key*/) { writing(); }
  virtual Work get(std::string_view /*key*/, const ciuic_place&, const ciuic_tensor& /*into*/,
                   const ciuic_stream*) {
    writing();
  }
  virtual std::string_view get_blob(std::string_view /*key*/) { writing(); }

 private:
  [[noreturn]] static void reading() {
    raise(Error(CIUIC_PRECONDITION, "this checkpoint was opened for reading"));
  }
  [[noreturn]] static void writing() {
    raise(Error(CIUIC_PRECONDITION, "this checkpoint is being written"));
  }

  Host host_;
};

class Checkpoint : public Instance {
 public:
  static constexpr uint32_t kind = CIUIC_KIND_CHECKPOINT;
  using Instance::Instance;

  [[nodiscard]] virtual std::unique_ptr<Archive> begin(const ciuic_save_request&) = 0;
  /// UNIMPLEMENTED: not my format. NOT_FOUND: nothing there. DATA_LOSS: ours, damaged.
  [[nodiscard]] virtual std::unique_ptr<Archive> open(std::string_view uri) = 0;
  virtual void remove(std::string_view uri) = 0;

  static const ciuic_checkpoint_vt& table() {
    static const ciuic_checkpoint_vt vt = make_table();
    return vt;
  }

 private:
  static ciuic_archive* to_archive(std::unique_ptr<Archive> a) {
    return reinterpret_cast<ciuic_archive*>(a.release());
  }
  static Archive& from_archive(ciuic_archive* a) { return *reinterpret_cast<Archive*>(a); }

  static ciuic_checkpoint_vt make_table() {
    ciuic_checkpoint_vt vt{};
    vt.struct_size = sizeof(vt);
    vt.begin = [](ciuic_instance* self, const ciuic_save_request* request, ciuic_archive** out) {
      auto& c = from_handle<Checkpoint>(self);
      *out = nullptr;
      return guard_running(c, [&] { *out = to_archive(c.begin(*request)); });
    };
    vt.put = [](ciuic_archive* self, ciuic_str key, const ciuic_place* place,
                const ciuic_tensor* tensor, const ciuic_stream* stream, ciuic_work** work) {
      Archive& a = from_archive(self);
      *work = nullptr;
      return guard(a.host(),
                   [&] { *work = a.put(to_view(key), *place, *tensor, stream).release(); });
    };
    vt.put_blob = [](ciuic_archive* self, ciuic_str key, const void* data, size_t size) {
      Archive& a = from_archive(self);
      return guard(a.host(), [&] {
        a.put_blob(to_view(key), {static_cast<const char*>(data), size});
      });
    };
    vt.commit = [](ciuic_archive* self, ciuic_work** work) {
      Archive& a = from_archive(self);
      *work = nullptr;
      return guard(a.host(), [&] { *work = a.commit().release(); });
    };
    vt.close = [](ciuic_archive* self) { delete &from_archive(self); };
    vt.open = [](ciuic_instance* self, const ciuic_open_request* request, ciuic_archive** out) {
      auto& c = from_handle<Checkpoint>(self);
      *out = nullptr;
      return guard_running(c, [&] { *out = to_archive(c.open(to_view(request->uri))); });
    };
    vt.list = [](ciuic_archive* self, ciuic_array* entries) {
      Archive& a = from_archive(self);
      return guard(a.host(), [&] { *entries = to_array(a.list()); });
    };
    vt.verify = [](ciuic_archive* self, ciuic_str key) {
      Archive& a = from_archive(self);
      return guard(a.host(), [&] { a.verify(to_view(key)); });
    };
    vt.get = [](ciuic_archive* self, ciuic_str key, const ciuic_place* place,
                const ciuic_tensor* into, const ciuic_stream* stream, ciuic_work** work) {
      Archive& a = from_archive(self);
      *work = nullptr;
      return guard(a.host(), [&] { *work = a.get(to_view(key), *place, *into, stream).release(); });
    };
    vt.get_blob = [](ciuic_archive* self, ciuic_str key, const void** data, size_t* size) {
      Archive& a = from_archive(self);
      return guard(a.host(), [&] {
        const std::string_view bytes = a.get_blob(to_view(key));
        *data = bytes.data();
        *size = bytes.size();
      });
    };
    vt.remove = [](ciuic_instance* self, ciuic_str uri) {
      auto& c = from_handle<Checkpoint>(self);
      return guard_running(c, [&] { c.remove(to_view(uri)); });
    };
    return vt;
  }
};

}  // namespace ciuic
