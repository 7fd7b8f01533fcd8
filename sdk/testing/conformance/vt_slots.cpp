// SPDX-License-Identifier: MIT
#include "vt_slots.hpp"

#include <cstring>
#include <string>

namespace ciuic::testing {
namespace {

constexpr size_t kHead = 2 * sizeof(uint32_t);

template <typename Table, size_t N>
std::vector<Slot> table(const Slot (&slots)[N]) {
  static_assert(sizeof(Table) == kHead + N * sizeof(void*), "a slot of the table has no name here");
  return std::vector<Slot>(slots, slots + N);
}

std::vector<Slot> communicator_slots() {
  return table<ciuic_communicator_vt>({{"capabilities", false},
                                       {"submit", false},
                                       {"split", false},
                                       {"health", false},
                                       {"abort", false},
                                       {"memory_alloc", true},
                                       {"memory_free", true},
                                       {"memory_register", true},
                                       {"memory_unregister", true}});
}
std::vector<Slot> sharding_slots() {
  return table<ciuic_sharding_vt>({{"plan", false},
                                   {"setup", false},
                                   {"begin_step", false},
                                   {"bind", false},
                                   {"drop", false},
                                   {"grad_ready", false},
                                   {"end_backward", false},
                                   {"grad_stats", false},
                                   {"step", false},
                                   {"rollback", false},
                                   {"export_roles", true}});
}
std::vector<Slot> precision_slots() {
  return table<ciuic_precision_vt>({{"dtype_for", false},
                                    {"attach", false},
                                    {"hooks", false},
                                    {"loss_scale", false},
                                    {"update", false},
                                    {"format", true},
                                    {"cast", true},
                                    {"gemm", true}});
}
std::vector<Slot> batch_scheduler_slots() {
  return table<ciuic_batch_scheduler_vt>({{"plan", false}, {"observe", false}});
}
std::vector<Slot> checkpoint_slots() {
  return table<ciuic_checkpoint_vt>({{"begin", false},
                                     {"put", false},
                                     {"put_blob", false},
                                     {"commit", false},
                                     {"close", false},
                                     {"open", false},
                                     {"list", false},
                                     {"verify", false},
                                     {"get", false},
                                     {"get_blob", false},
                                     {"remove", true}});
}
std::vector<Slot> profiler_slots() {
  return table<ciuic_profiler_vt>({{"mask", false}, {"emit", false}, {"flush", false}});
}
std::vector<Slot> optimizer_slots() {
  return table<ciuic_optimizer_vt>({{"granule", false}, {"state_spec", false}, {"update", false}});
}

}  // namespace

const std::vector<Slot>& slots_of(uint32_t kind) {
  static const std::vector<Slot> by_kind[] = {{},
                                              communicator_slots(),
                                              sharding_slots(),
                                              precision_slots(),
                                              batch_scheduler_slots(),
                                              checkpoint_slots(),
                                              profiler_slots(),
                                              optimizer_slots()};
  return by_kind[kind <= CIUIC_KIND_OPTIMIZER ? kind : 0];
}

const char* kind_name(uint32_t kind) {
  static constexpr const char* kNames[] = {"any",       "communicator",    "sharding",
                                           "precision", "batch_scheduler", "checkpoint",
                                           "profiler",  "optimizer"};
  return kind <= CIUIC_KIND_OPTIMIZER ? kNames[kind] : "unknown";
}

const void* slot_address(const ciuic_descriptor& descriptor, size_t index) {
  uint32_t struct_size = 0;
  std::memcpy(&struct_size, descriptor.vt, sizeof(struct_size));
  const size_t offset = kHead + index * sizeof(void*);
  const void* out = nullptr;
  if (struct_size >= offset + sizeof(void*)) {
    std::memcpy(&out, static_cast<const char*>(descriptor.vt) + offset, sizeof(out));
  }
  return out;
}

}  // namespace ciuic::testing
