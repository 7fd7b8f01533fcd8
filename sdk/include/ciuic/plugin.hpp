// SPDX-License-Identifier: MIT
//
// What every plugin class shares: its context, its life, its descriptor. A kind's header
// (communicator.hpp, ...) adds the base class with that kind's hooks. A whole plugin:
//
//   #include <ciuic/profiler.hpp>
//
//   class Counter final : public ciuic::Profiler {
//    public:
//     static constexpr const char* name = "counter";
//     static constexpr const char* version = "1.0.0";
//     static constexpr const char* license = "MIT";
//     static constexpr const char* summary = "counts events";
//     inline static const auto options = ciuic::option_table(
//         ciuic::option_i64("every", 100, 1, 1 << 20, "Events between two log lines"));
//
//     explicit Counter(const ciuic::Context& c) : Profiler(c), every_(c.options().i64("every")) {}
//     ...hooks...
//   };
//   CIUIC_PLUGINS(Counter)
//
// The author cannot set versions of the ABI or struct sizes. Exceptions stay inside.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <type_traits>

#include <ciuic/abi/ciuic.h>
#include <ciuic/error.hpp>
#include <ciuic/host.hpp>
#include <ciuic/note.hpp>
#include <ciuic/options.hpp>
#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

namespace ciuic {

/// What an instance is made from. Valid during construction only, but for host().
class Context {
 public:
  explicit Context(const ciuic_create_args& args) : args_(args), options_(args.options) {}

  [[nodiscard]] Host host() const { return Host(args_.host); }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] int32_t rank() const { return args_.rank; }
  [[nodiscard]] int32_t world() const { return args_.world; }
  [[nodiscard]] int32_t local_rank() const { return args_.local_rank; }
  [[nodiscard]] int32_t local_world() const { return args_.local_world; }
  [[nodiscard]] ciuic_device device() const { return args_.device; }
  [[nodiscard]] uint64_t generation() const { return args_.generation; }
  /// A folder for files of the instance's own; empty: there is none.
  [[nodiscard]] std::string output() const { return std::string(to_view(args_.output)); }

 private:
  const ciuic_create_args& args_;
  Options options_;
};

/// Inside state_save.
class StateWriter {
 public:
  StateWriter(Host host, const ciuic_writer* writer) : host_(host), writer_(writer) {}
  void blob(std::string_view key, std::string_view bytes) const {
    host_.check(writer_->blob(writer_->ctx, to_str(key), bytes.data(), bytes.size()));
  }
  void tensor(std::string_view key, const Place& place, const ciuic_tensor& tensor) const {
    const ciuic_place c = place.c();
    host_.check(writer_->tensor(writer_->ctx, to_str(key), &c, &tensor, nullptr));
  }

 private:
  Host host_;
  const ciuic_writer* writer_;
};

/// Inside state_load.
class StateReader {
 public:
  StateReader(Host host, const ciuic_reader* reader) : host_(host), reader_(reader) {}

  /// Who wrote it; empty: the initialiser of a fresh run.
  [[nodiscard]] std::string_view plugin() const { return to_view(reader_->plugin); }
  /// The writer's state_schema.
  [[nodiscard]] uint64_t schema() const { return reader_->schema; }
  /// Everything that is there; valid inside load.
  [[nodiscard]] ArrayView<ciuic_entry> entries() const {
    ciuic_array entries{nullptr, 0, 0};
    host_.check(reader_->list(reader_->ctx, &entries));
    return entries;
  }
  /// Throws NOT_FOUND when there is no such key.
  [[nodiscard]] std::string blob(std::string_view key) const {
    const void* data = nullptr;
    size_t size = 0;
    host_.check(reader_->blob(reader_->ctx, to_str(key), &data, &size));
    return std::string(static_cast<const char*>(data), size);
  }
  /// Fills `into`; false when there is no such key.
  [[nodiscard]] bool tensor(std::string_view key, const Place& place,
                            const ciuic_tensor& into) const {
    const ciuic_place c = place.c();
    ciuic_work* work = nullptr;
    ciuic_status* status = reader_->tensor(reader_->ctx, to_str(key), &c, &into, nullptr, &work);
    if (status != nullptr) {
      const Error error = host_.take(status);
      if (error.code() == CIUIC_NOT_FOUND) {
        return false;
      }
      raise(error);
    }
    Work(work).wait(host_);
    return true;
  }

 private:
  Host host_;
  const ciuic_reader* reader_;
};

/// Base of every kind's base class.
class Instance {
 public:
  explicit Instance(const Context& context) : host_(context.host()) {}
  explicit Instance(const Host& host) : host_(host) {}
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  virtual ~Instance() = default;

  [[nodiscard]] const Host& host() const noexcept { return host_; }
  /// Between quiesce and resume.
  [[nodiscard]] bool is_quiet() const noexcept { return is_quiet_.load(std::memory_order_relaxed); }
  void set_quiet(bool quiet) noexcept { is_quiet_.store(quiet, std::memory_order_relaxed); }

  /// No work, thread or callback is left when this returns.
  virtual void quiesce(int64_t /*timeout_ns*/) {}
  virtual void resume() {}
  virtual void save(const StateWriter&) {}
  virtual void load(const StateReader&) {}

  // Defaults that a plugin may hide with its own.
  static constexpr const char* vendor = "";
  static constexpr uint32_t flags = 0;
  static constexpr uint32_t min_host_minor = 0;  // from ABI 1.0 on: the oldest host it runs on
  static constexpr uint32_t state_schema = 1;
  static constexpr uint32_t state_schema_min = 1;  // the oldest state that load still reads
  static constexpr std::array<const char*, 1> features{nullptr};
  inline static const std::array<ciuic_option_spec, 0> options{};
  /// Checks options against each other; throws INVALID. No services, no side effects.
  static void validate(const Context&) {}

 private:
  Host host_;
  std::atomic<bool> is_quiet_{false};
};

/// guard() for a function that may only be called while the instance runs.
template <typename Body>
ciuic_status* guard_running(const Instance& instance, Body&& body) noexcept {
  if (instance.is_quiet()) {
    return instance.host().status(CIUIC_PRECONDITION,
                                  "it was quiesced; only state_save, resume and destroy come next");
  }
  return guard(instance.host(), body);
}

/// The C handle of an instance, and back.
inline ciuic_instance* to_handle(Instance* instance) noexcept {
  return reinterpret_cast<ciuic_instance*>(instance);
}
template <typename T = Instance>
T& from_handle(ciuic_instance* handle) noexcept {
  return static_cast<T&>(*reinterpret_cast<Instance*>(handle));
}

namespace detail {

/// Descriptor functions of plugin class T.
template <typename T>
struct Life {
  static ciuic_status* validate(const ciuic_create_args* args) {
    return guard(Host(args->host), [&] { T::validate(Context(*args)); });
  }
  static ciuic_status* create(const ciuic_create_args* args, ciuic_instance** out) {
    std::unique_ptr<T> made;
    ciuic_status* status =
        guard(Host(args->host), [&] { made = std::make_unique<T>(Context(*args)); });
    *out = status == nullptr ? to_handle(made.release()) : nullptr;
    return status;
  }
  static ciuic_status* quiesce(ciuic_instance* self, int64_t timeout_ns) {
    Instance& i = from_handle(self);
    return guard(i.host(), [&] {
      i.quiesce(timeout_ns);
      i.set_quiet(true);
    });
  }
  static ciuic_status* resume(ciuic_instance* self) {
    Instance& i = from_handle(self);
    return guard(i.host(), [&] {
      i.resume();
      i.set_quiet(false);
    });
  }
  static ciuic_status* save(ciuic_instance* self, const ciuic_writer* writer) {
    Instance& i = from_handle(self);
    return guard(i.host(), [&] { i.save(StateWriter(i.host(), writer)); });
  }
  static ciuic_status* load(ciuic_instance* self, const ciuic_reader* reader) {
    Instance& i = from_handle(self);
    return guard_running(i, [&] { i.load(StateReader(i.host(), reader)); });
  }
  static void destroy(ciuic_instance* self) { delete &from_handle(self); }
};

#if defined(__clang__)
inline constexpr const char* kCompiler = "clang " __clang_version__;
#elif defined(__GNUC__)
inline constexpr const char* kCompiler = "gcc " __VERSION__;
#else
inline constexpr const char* kCompiler = "unknown compiler";
#endif

template <typename T>
ciuic_descriptor make_descriptor() {
  ciuic_descriptor d{};
  d.struct_size = sizeof(d);
  d.flags = T::flags;
  d.abi_major = CIUIC_ABI_MAJOR;
  d.abi_minor = CIUIC_ABI_MINOR;
  d.min_host_minor = CIUIC_ABI_MAJOR == 0 ? CIUIC_ABI_MINOR : T::min_host_minor;
  d.kind = T::kind;
  d.state_schema = T::state_schema;
  d.state_schema_min = T::state_schema_min;
  d.name = T::name;
  d.version = T::version;
  d.vendor = T::vendor;
  d.license = T::license;
  d.summary = T::summary;
  d.build = kCompiler;
  d.features = T::features.data();
  d.options = {T::options.data(), static_cast<uint32_t>(T::options.size()),
               sizeof(ciuic_option_spec)};
  d.vt = &T::table();
  d.validate = &Life<T>::validate;
  d.create = &Life<T>::create;
  d.quiesce = &Life<T>::quiesce;
  d.resume = &Life<T>::resume;
  d.state_save = &Life<T>::save;
  d.state_load = &Life<T>::load;
  d.destroy = &Life<T>::destroy;
  return d;
}

template <typename... Plugins>
const ciuic_descriptor* query(uint32_t abi_major, uint32_t index) {
  static const std::array<ciuic_descriptor, sizeof...(Plugins)> all{make_descriptor<Plugins>()...};
  return abi_major == CIUIC_ABI_MAJOR && index < all.size() ? &all[index] : nullptr;
}

}  // namespace detail
}  // namespace ciuic

/// Ends a plugin's source file: names the plugin classes of the library. Writes the library's ELF
/// note and its one exported symbol.
#define CIUIC_PLUGINS(...)                                                                      \
  __attribute__((section(CIUIC_NOTE_SECTION), used,                                             \
                 aligned(4))) static constexpr auto ciuic_note_of_this_library =                \
      ciuic::detail::make_note<__VA_ARGS__>();                                                  \
  extern "C" __attribute__((visibility("default"))) const ciuic_descriptor* ciuic_plugin_query( \
      uint32_t abi_major, uint32_t index) {                                                     \
    return ciuic::detail::query<__VA_ARGS__>(abi_major, index);                                 \
  }
