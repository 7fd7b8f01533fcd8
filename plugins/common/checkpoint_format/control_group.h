// SPDX-License-Identifier: MIT
//
// The ranks that save together, and how they agree that all of them succeeded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <ciuic/host.hpp>

namespace ciuic::plugins::checkpoint {

/// The "control" group, or one rank alone where there is no communicator. The calling thread only.
class ControlGroup final {
 public:
  /// timeout_ns: how long one rank may wait for another's writes.
  ControlGroup(const Host& host, int64_t timeout_ns);

  [[nodiscard]] int32_t rank() const noexcept { return rank_; }
  [[nodiscard]] int32_t size() const noexcept { return size_; }

  /// Runs `body` here and returns when all ranks have run theirs. Where any of them threw, all
  /// throw the same: the highest code, of the lowest rank that has it, whose number stands in front
  /// of the message. Collective: every rank, same order.
  void together(const std::function<void()>& body) const;
  /// Throws INVALID on all ranks unless `fingerprint` is equal on all. Collective.
  void same_everywhere(uint64_t fingerprint, const std::string& what) const;

 private:
  void agree(const std::optional<Error>& mine) const;
  void all_reduce_max(int64_t* values, int64_t count, const char* label) const;
  void broadcast(char* bytes, int64_t count, int32_t root) const;
  void submit(uint32_t op, uint32_t reduce, int32_t peer, const ciuic_tensor* in,
              const ciuic_tensor* out, const char* label) const;

  Host host_;
  const ciuic_group* group_ = nullptr;
  int64_t timeout_ns_;
  int32_t rank_ = 0;
  int32_t size_ = 1;
};

}  // namespace ciuic::plugins::checkpoint
