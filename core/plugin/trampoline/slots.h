// SPDX-License-Identifier: MIT
//
// The functions of every kind's table, as one list each: what the host wraps, names in messages,
// and writes down in a call log. A new function of the ABI is one line here; a static_assert counts
// that none is missing.
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>

#include <ciuic/abi/ciuic.h>

namespace ciuic::core {

/// The functions of the descriptor, and the loading of its library, by name. Arrays, so that each has
/// one address in the program (crumb_board.h).
inline constexpr char kLoadCall[] = "library.load";
inline constexpr char kCreateCall[] = "create";
inline constexpr char kDestroyCall[] = "destroy";
inline constexpr char kValidateCall[] = "validate";
inline constexpr char kQuiesceCall[] = "quiesce";
inline constexpr char kResumeCall[] = "resume";
inline constexpr char kSetOptionCall[] = "set_option";
inline constexpr char kStateSaveCall[] = "state_save";
inline constexpr char kStateLoadCall[] = "state_load";
inline constexpr const char* kLifeCalls[] = {kLoadCall,      kCreateCall,    kDestroyCall,
                                             kValidateCall,  kQuiesceCall,   kResumeCall,
                                             kSetOptionCall, kStateSaveCall, kStateLoadCall};

/// One function of a table. Element: what its ciuic_array argument holds, if it has one.
template <typename Vt, typename Function, typename Element>
struct TableSlot {
  using Items = Element;
  Function Vt::*member;
  const char* name;  // "communicator.submit"
};

template <typename Element = void, typename Vt, typename Function>
constexpr TableSlot<Vt, Function, Element> slot(Function Vt::*member, const char* name) {
  return {member, name};
}

template <typename Vt>
struct Slots;

template <>
struct Slots<ciuic_communicator_vt> {
  using T = ciuic_communicator_vt;
  static constexpr uint32_t kind = CIUIC_KIND_COMMUNICATOR;
  static constexpr auto all = std::make_tuple(
      slot(&T::capabilities, "communicator.capabilities"),
      slot<ciuic_collective>(&T::submit, "communicator.submit"),
      slot(&T::split, "communicator.split"), slot(&T::health, "communicator.health"),
      slot(&T::abort, "communicator.abort"), slot(&T::memory_alloc, "communicator.memory_alloc"),
      slot(&T::memory_free, "communicator.memory_free"),
      slot(&T::memory_register, "communicator.memory_register"),
      slot(&T::memory_unregister, "communicator.memory_unregister"));
};

template <>
struct Slots<ciuic_sharding_vt> {
  using T = ciuic_sharding_vt;
  static constexpr uint32_t kind = CIUIC_KIND_SHARDING;
  static constexpr auto all = std::make_tuple(
      slot<ciuic_extent>(&T::plan, "sharding.plan"), slot(&T::setup, "sharding.setup"),
      slot(&T::begin_step, "sharding.begin_step"), slot<ciuic_binding>(&T::bind, "sharding.bind"),
      slot(&T::drop, "sharding.drop"), slot(&T::grad_ready, "sharding.grad_ready"),
      slot(&T::end_backward, "sharding.end_backward"), slot(&T::grad_stats, "sharding.grad_stats"),
      slot(&T::step, "sharding.step"), slot(&T::rollback, "sharding.rollback"),
      slot(&T::export_roles, "sharding.export_roles"));
};

template <>
struct Slots<ciuic_optimizer_vt> {
  using T = ciuic_optimizer_vt;
  static constexpr uint32_t kind = CIUIC_KIND_OPTIMIZER;
  static constexpr auto all =
      std::make_tuple(slot(&T::granule, "optimizer.granule"),
                      slot<ciuic_state_spec>(&T::state_spec, "optimizer.state_spec"),
                      slot<ciuic_update>(&T::update, "optimizer.update"));
};

template <>
struct Slots<ciuic_precision_vt> {
  using T = ciuic_precision_vt;
  static constexpr uint32_t kind = CIUIC_KIND_PRECISION;
  static constexpr auto all = std::make_tuple(
      slot(&T::dtype_for, "precision.dtype_for"),
      slot<ciuic_module>(&T::attach, "precision.attach"), slot(&T::hooks, "precision.hooks"),
      slot(&T::loss_scale, "precision.loss_scale"), slot(&T::update, "precision.update"),
      slot(&T::format, "precision.format"), slot(&T::cast, "precision.cast"),
      slot(&T::gemm, "precision.gemm"));
};

template <>
struct Slots<ciuic_batch_scheduler_vt> {
  using T = ciuic_batch_scheduler_vt;
  static constexpr uint32_t kind = CIUIC_KIND_BATCH_SCHEDULER;
  static constexpr auto all =
      std::make_tuple(slot<ciuic_batch_item>(&T::plan, "batch_scheduler.plan"),
                      slot<ciuic_rank_report>(&T::observe, "batch_scheduler.observe"));
};

template <>
struct Slots<ciuic_checkpoint_vt> {
  using T = ciuic_checkpoint_vt;
  static constexpr uint32_t kind = CIUIC_KIND_CHECKPOINT;
  static constexpr auto all = std::make_tuple(
      slot(&T::begin, "checkpoint.begin"), slot(&T::put, "checkpoint.put"),
      slot(&T::put_blob, "checkpoint.put_blob"), slot(&T::commit, "checkpoint.commit"),
      slot(&T::close, "checkpoint.close"), slot(&T::open, "checkpoint.open"),
      slot<ciuic_entry>(&T::list, "checkpoint.list"), slot(&T::verify, "checkpoint.verify"),
      slot(&T::get, "checkpoint.get"), slot(&T::get_blob, "checkpoint.get_blob"),
      slot(&T::remove, "checkpoint.remove"));
};

template <>
struct Slots<ciuic_profiler_vt> {
  using T = ciuic_profiler_vt;
  static constexpr uint32_t kind = CIUIC_KIND_PROFILER;
  static constexpr auto all =
      std::make_tuple(slot(&T::mask, "profiler.mask"), slot<ciuic_event>(&T::emit, "profiler.emit"),
                      slot(&T::flush, "profiler.flush"));
};

template <typename Vt>
inline constexpr size_t kNumSlots = std::tuple_size_v<decltype(Slots<Vt>::all)>;

/// Every member of the table after struct_size and flags is a function: none may be missing above.
template <typename Vt>
inline constexpr bool kHasAllSlots = sizeof(Vt) ==
                                     2 * sizeof(uint32_t) + kNumSlots<Vt> * sizeof(void (*)());
static_assert(kHasAllSlots<ciuic_communicator_vt> && kHasAllSlots<ciuic_sharding_vt> &&
              kHasAllSlots<ciuic_optimizer_vt> && kHasAllSlots<ciuic_precision_vt> &&
              kHasAllSlots<ciuic_batch_scheduler_vt> && kHasAllSlots<ciuic_checkpoint_vt> &&
              kHasAllSlots<ciuic_profiler_vt>);

/// Does the call itself wait for peers, rather than the work that it gives?
template <typename Vt, size_t I>
inline constexpr bool kWaitsForPeers = std::is_same_v<Vt, ciuic_communicator_vt>&& std::string_view(
                                           std::get<I>(Slots<Vt>::all).name) ==
                                       "communicator.split";

/// Calls `f` with the table type of a kind, as f.template operator()<Vt>(). False: no such kind.
template <typename F>
bool with_table_of(uint32_t kind, F&& f) {
  switch (kind) {
    case CIUIC_KIND_COMMUNICATOR:
      f.template operator()<ciuic_communicator_vt>();
      return true;
    case CIUIC_KIND_SHARDING:
      f.template operator()<ciuic_sharding_vt>();
      return true;
    case CIUIC_KIND_OPTIMIZER:
      f.template operator()<ciuic_optimizer_vt>();
      return true;
    case CIUIC_KIND_PRECISION:
      f.template operator()<ciuic_precision_vt>();
      return true;
    case CIUIC_KIND_BATCH_SCHEDULER:
      f.template operator()<ciuic_batch_scheduler_vt>();
      return true;
    case CIUIC_KIND_CHECKPOINT:
      f.template operator()<ciuic_checkpoint_vt>();
      return true;
    case CIUIC_KIND_PROFILER:
      f.template operator()<ciuic_profiler_vt>();
      return true;
    default:
      return false;
  }
}

}  // namespace ciuic::core
