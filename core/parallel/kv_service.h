// SPDX-License-Identifier: MIT
//
// "ciuic.kv": the rendezvous store as a plugin sees it, its keys behind a prefix of the plugin's
// own.
#pragma once

#include <string>

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>

#include "core/parallel/rendezvous.h"

namespace ciuic::core {

/// Any thread. The rendezvous outlives it, and it outlives its table's users.
class KvService final {
 public:
  /// `prefix` tells plugin and generation apart: "gloo/0".
  KvService(const ciuic_host* host, Rendezvous& rendezvous, std::string prefix);
  KvService(const KvService&) = delete;
  KvService& operator=(const KvService&) = delete;

  [[nodiscard]] const ciuic_kv_service* table() const noexcept { return &table_; }

 private:
  [[nodiscard]] std::string full(ciuic_str key) const;

  Host host_;
  Rendezvous& rendezvous_;
  std::string prefix_;
  ciuic_kv_service table_{};
};

}  // namespace ciuic::core
