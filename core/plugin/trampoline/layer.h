// SPDX-License-Identifier: MIT
//
// The host's way into an instance is a stack of layers, outermost first: decorators, then the
// trampoline around the plugin itself. Each layer looks like an instance of the kind: a table whose
// functions take the layer's own handle. So whoever holds one, the host or another plugin, neither
// knows nor cares what lies below.
//
// KindLayer writes that table once, for all kinds, from the list in slots.h. A layer adds one
// member template:
//
//   template <size_t I, typename Invoke, typename... A>
//   auto through(const Invoke& invoke, A... args);    // invoke(args...) calls what is below
#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/plugin/trampoline/call_guard.h"
#include "core/plugin/trampoline/slots.h"

namespace ciuic::core {

class Layer {
 public:
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  /// Destroys the instance.
  virtual ~Layer() = default;

  [[nodiscard]] ciuic_instance* handle() noexcept {
    return reinterpret_cast<ciuic_instance*>(this);
  }
  static Layer& of(ciuic_instance* handle) noexcept { return *reinterpret_cast<Layer*>(handle); }

  /// The kind's table.
  [[nodiscard]] virtual const void* table() const noexcept = 0;
  /// The door at the bottom.
  [[nodiscard]] virtual const std::shared_ptr<CallGuard>& guard() const noexcept = 0;

  // The functions of the descriptor, as there; what is optional there succeeds here.
  virtual ciuic_status* quiesce(int64_t timeout_ns) = 0;
  virtual ciuic_status* resume() = 0;
  virtual ciuic_status* set_option(const ciuic_option& option) = 0;
  virtual ciuic_status* state_save(const ciuic_writer& writer) = 0;
  virtual ciuic_status* state_load(const ciuic_reader& reader) = 0;
};

/// A checkpoint archive as this layer hands it out.
struct ArchiveHandle {
  Layer* layer;
  ciuic_archive* below;

  [[nodiscard]] ciuic_archive* handle() noexcept { return reinterpret_cast<ciuic_archive*>(this); }
  static ArchiveHandle& of(ciuic_archive* handle) noexcept {
    return *reinterpret_cast<ArchiveHandle*>(handle);
  }
};

/// The last of some arguments.
template <typename... A>
decltype(auto) last_of(A&... args) {
  return std::get<sizeof...(A) - 1>(std::tie(args...));
}
template <typename T, typename... A>
inline constexpr bool kEndsWith = false;
template <typename T, typename First, typename... Rest>
inline constexpr bool kEndsWith<T, First, Rest...> =
    std::is_same_v<T, std::tuple_element_t<sizeof...(Rest), std::tuple<First, Rest...>>>;

template <typename Vt, typename Derived>
class KindLayer : public Layer {
 public:
  [[nodiscard]] const void* table() const noexcept override { return &table_; }

 protected:
  KindLayer(const void* below, ciuic_instance* self)
      : below_(static_cast<const Vt*>(below)), self_(self) {
    table_.struct_size = sizeof(table_);
    table_.flags = below_->flags;
    fill(std::make_index_sequence<kNumSlots<Vt>>());
  }
  [[nodiscard]] const Vt& below() const noexcept { return *below_; }
  [[nodiscard]] ciuic_instance* below_self() const noexcept { return self_; }

 private:
  template <size_t I>
  static constexpr auto member() {
    return std::get<I>(Slots<Vt>::all).member;
  }
  static Derived& of(ciuic_instance* handle) noexcept {
    return static_cast<Derived&>(Layer::of(handle));
  }

  /// The function that the table shows for slot I.
  template <size_t I, typename R, typename H, typename... A>
  static R entry(H* handle, A... args) {
    if constexpr (std::is_same_v<H, ciuic_archive>) {
      ArchiveHandle& archive = ArchiveHandle::of(handle);
      auto& me = static_cast<Derived&>(*archive.layer);
      if constexpr (std::is_void_v<R>) {  // close
        const std::unique_ptr<ArchiveHandle> owned(&archive);
        return pass<I, R>(me, archive.below, args...);
      } else {
        return pass<I, R>(me, archive.below, args...);
      }
    } else {
      Derived& me = of(handle);
      return pass<I, R>(me, me.below_self(), args...);
    }
  }

  template <size_t I, typename R, typename H, typename... A>
  static R pass(Derived& me, H* target, A... args) {
    const Vt* below = static_cast<KindLayer&>(me).below_;
    const auto invoke = [below, target](A... again) -> R {
      return (below->*member<I>())(target, again...);
    };
    if constexpr (kEndsWith<ciuic_archive**, A...> || kEndsWith<ciuic_instance**, A...>) {
      ciuic_status* status = me.template through<I>(invoke, args...);
      if (status == nullptr && *last_of(args...) != nullptr) {
        show(me, last_of(args...));
      }
      return status;
    } else {
      return me.template through<I>(invoke, args...);
    }
  }

  // What comes up from below is shown as this layer's own.
  static void show(Derived& me, ciuic_archive** archive) {
    *archive = (new ArchiveHandle{&me, *archive})->handle();
  }
  static void show(Derived& me, ciuic_instance** child) {
    *child = me.child(*child).release()->handle();
  }

  template <size_t... I>
  void fill(std::index_sequence<I...>) {
    (fill_one<I>(member<I>()), ...);
  }
  template <size_t I, typename R, typename H, typename... A>
  void fill_one(R (*Vt::*m)(H*, A...)) {
    const auto end = reinterpret_cast<const char*>(&(below_->*m)) + sizeof(below_->*m) -
                     reinterpret_cast<const char*>(below_);
    if (static_cast<size_t>(end) <= below_->struct_size && below_->*m != nullptr) {
      table_.*m = &KindLayer::entry<I, R, H, A...>;
    }
  }

  const Vt* below_;
  ciuic_instance* self_;
  Vt table_{};
};

}  // namespace ciuic::core
