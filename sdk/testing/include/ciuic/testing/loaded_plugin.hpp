// SPDX-License-Identifier: MIT
//
// A plugin opened as the host opens it: dlopen, query, options from the table's defaults and the
// test's own values, create, destroy.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <ciuic/abi/ciuic.h>
#include <ciuic/plugin.hpp>
#include <ciuic/testing/guarded_struct.hpp>
#include <ciuic/testing/memory_state.hpp>
#include <ciuic/testing/test_host.hpp>

namespace ciuic::testing {

using OptionValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>,
                                 std::vector<int64_t>, std::vector<double>>;
using OptionValues = std::map<std::string, OptionValue>;

/// Where an instance sits.
struct Seat {
  int32_t rank = 0;
  int32_t world = 1;
  ciuic_device device{CIUIC_DEVICE_CPU, 0};
  std::string output{};  // a folder for files of its own; empty: there is none
};

/// The arguments of create and validate, with everything they point at. Each struct and each text
/// ends at an inaccessible page, and all of it is unmapped with this object: a plugin that reads
/// past an end, or keeps a pointer, faults.
class CreateArgs {
 public:
  CreateArgs(const ciuic_descriptor& descriptor, const TestHost& host, OptionValues values,
             Seat seat)
      : values_(std::move(values)) {
    std::vector<ciuic_option> options;
    size_t used = 0;
    for (const ciuic_option_spec& spec : ArrayView<ciuic_option_spec>(descriptor.options)) {
      options.push_back(option(spec, used));
    }
    if (used != values_.size()) {
      throw Error(CIUIC_INVALID,
                  std::string(descriptor.name) + " does not declare all of the options given");
    }
    options_.emplace(options);
    args_->host = host.table();
    args_->options = options_->c();
    args_->rank = args_->local_rank = seat.rank;
    args_->world = args_->local_world = seat.world;
    args_->device = seat.device;
    args_->name = text(descriptor.name);
    args_->output = text(seat.output);
  }
  CreateArgs(const CreateArgs&) = delete;
  CreateArgs& operator=(const CreateArgs&) = delete;

  [[nodiscard]] const ciuic_create_args* c() const noexcept { return args_.get(); }

 private:
  ciuic_option option(const ciuic_option_spec& spec, size_t& used) {
    ciuic_option out{};
    out.struct_size = sizeof(out);
    out.type = spec.type;
    out.key = text(spec.key);
    const auto given = values_.find(spec.key);
    if (given == values_.end()) {
      out.value = default_of(spec);
    } else {
      ++used;
      out.value = value(given->second);
    }
    return out;
  }
  ciuic_value default_of(const ciuic_option_spec& spec) {
    ciuic_value out = spec.def;
    if (spec.type == CIUIC_TYPE_STRING || spec.type == CIUIC_TYPE_ENUM) {
      out.s = text(to_view(spec.def.s));
    }
    return out;
  }
  ciuic_value value(const OptionValue& given) {
    ciuic_value out{};
    if (const auto* b = std::get_if<bool>(&given)) {
      out.i = *b ? 1 : 0;
    } else if (const auto* i = std::get_if<int64_t>(&given)) {
      out.i = *i;
    } else if (const auto* f = std::get_if<double>(&given)) {
      out.f = *f;
    } else if (const auto* s = std::get_if<std::string>(&given)) {
      out.s = text(*s);
    } else if (const auto* numbers = std::get_if<std::vector<int64_t>>(&given)) {
      out.list = to_array(*numbers);
    } else if (const auto* reals = std::get_if<std::vector<double>>(&given)) {
      out.list = to_array(*reals);
    } else {
      std::vector<ciuic_str> list;
      for (const std::string& item : std::get<std::vector<std::string>>(given)) {
        list.push_back(text(item));
      }
      out.list = lists_.emplace_back(list).c();
    }
    return out;
  }
  ciuic_str text(std::string_view s) {
    if (s.empty()) {
      return {nullptr, 0};
    }
    GuardedBytes& bytes = texts_.emplace_back(s.size());
    std::memcpy(bytes.data(), s.data(), s.size());
    return {bytes.data(), s.size()};
  }

  OptionValues values_;
  std::deque<GuardedBytes> texts_;
  std::deque<GuardedArray<ciuic_str>> lists_;
  std::optional<GuardedArray<ciuic_option>> options_;
  GuardedStruct<ciuic_create_args> args_;
};

/// An instance, destroyed with this object; its TestHost must live longer.
class PluginInstance {
 public:
  PluginInstance(const ciuic_descriptor& descriptor, Host host, ciuic_instance* self)
      : descriptor_(&descriptor), host_(host), self_(self) {}
  PluginInstance(PluginInstance&& o) noexcept
      : descriptor_(o.descriptor_), host_(o.host_), self_(std::exchange(o.self_, nullptr)) {}
  PluginInstance& operator=(PluginInstance&&) = delete;
  ~PluginInstance() {
    if (self_ != nullptr) {
      descriptor_->destroy(self_);
    }
  }

  [[nodiscard]] ciuic_instance* self() const noexcept { return self_; }
  template <typename Table>
  [[nodiscard]] const Table& table() const noexcept {
    return *static_cast<const Table*>(descriptor_->vt);
  }
  /// Throws what a call reports.
  void check(ciuic_status* status) const { host_.check(status); }

  void quiesce(int64_t timeout_ns = 1'000'000'000) const {
    if (descriptor_->quiesce != nullptr) {
      check(descriptor_->quiesce(self_, timeout_ns));
    }
  }
  void save(MemoryState& state) const {
    check(descriptor_->state_save(self_, state.writer(host_)));
  }
  void load(MemoryState& state) const {
    check(descriptor_->state_load(self_, state.reader(host_)));
  }

  /// As "ciuic.optimizer" or "ciuic.precision" hands it to other plugins.
  [[nodiscard]] ciuic_kind_service service() const noexcept {
    return {sizeof(ciuic_kind_service), descriptor_->kind, descriptor_->vt, self_};
  }

 private:
  const ciuic_descriptor* descriptor_;
  Host host_;
  ciuic_instance* self_;
};

/// A library; it stays mapped.
class LoadedPlugin {
 public:
  explicit LoadedPlugin(const std::string& path, uint32_t index = 0) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      throw Error(CIUIC_NOT_FOUND, dlerror());
    }
    query_ = reinterpret_cast<decltype(&ciuic_plugin_query)>(dlsym(library, "ciuic_plugin_query"));
    if (query_ == nullptr) {
      throw Error(CIUIC_NOT_FOUND, path + " exports no ciuic_plugin_query");
    }
    descriptor_ = query_(CIUIC_ABI_MAJOR, index);
    if (descriptor_ == nullptr) {
      throw Error(CIUIC_NOT_FOUND, path + " has no plugin " + std::to_string(index));
    }
  }

  [[nodiscard]] const ciuic_descriptor& descriptor() const noexcept { return *descriptor_; }
  [[nodiscard]] const ciuic_descriptor* query(uint32_t abi_major, uint32_t index) const {
    return query_(abi_major, index);
  }

  /// Throws what validate reports.
  void validate(const TestHost& host, OptionValues values = {}, Seat seat = {}) const {
    const CreateArgs args(*descriptor_, host, std::move(values), std::move(seat));
    if (descriptor_->validate != nullptr) {
      host.host().check(descriptor_->validate(args.c()));
    }
  }
  [[nodiscard]] PluginInstance create(const TestHost& host, OptionValues values = {},
                                      Seat seat = {}) const {
    const CreateArgs args(*descriptor_, host, std::move(values), std::move(seat));
    ciuic_instance* self = nullptr;
    host.host().check(descriptor_->create(args.c(), &self));
    return PluginInstance(*descriptor_, host.host(), self);
  }

 private:
  decltype(&ciuic_plugin_query) query_ = nullptr;
  const ciuic_descriptor* descriptor_ = nullptr;
};

}  // namespace ciuic::testing
