// SPDX-License-Identifier: MIT
//
// The seven kinds by name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <ciuic/abi/types.h>

namespace ciuic::core {

struct KindName {
  uint32_t kind;
  std::string_view name;
};

inline constexpr std::array<KindName, 7> kKinds{{
    {CIUIC_KIND_COMMUNICATOR, "communicator"},
    {CIUIC_KIND_SHARDING, "sharding"},
    {CIUIC_KIND_OPTIMIZER, "optimizer"},
    {CIUIC_KIND_PRECISION, "precision"},
    {CIUIC_KIND_BATCH_SCHEDULER, "batch_scheduler"},
    {CIUIC_KIND_CHECKPOINT, "checkpoint"},
    {CIUIC_KIND_PROFILER, "profiler"},
}};

inline std::string_view kind_name(uint32_t kind) {
  for (const KindName& k : kKinds) {
    if (k.kind == kind) {
      return k.name;
    }
  }
  return "unknown kind";
}

inline std::optional<uint32_t> kind_of(std::string_view name) {
  for (const KindName& k : kKinds) {
    if (k.name == name) {
      return k.kind;
    }
  }
  return std::nullopt;
}

}  // namespace ciuic::core
