// SPDX-License-Identifier: MIT
//
// Collectives over flat memory that is cut into uneven parts. Where a communicator cannot do uneven
// parts, they are padded on the way; where it cannot reduce and scatter, all is reduced.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ciuic/abi/communicator.h>
#include <ciuic/host.hpp>
#include <ciuic/sharding/partition.hpp>
#include <ciuic/work.hpp>

#include "sharding/services.h"

namespace ciuic::plugins::stages {

/// A collective under way. Whoever starts one waits for it before the memory goes.
class Pending {
 public:
  Pending() = default;
  Pending(Work work, std::string label) : work_(std::move(work)), label_(std::move(label)) {}

  [[nodiscard]] bool is_pending() const { return static_cast<bool>(work_) || after_ != nullptr; }
  /// Needs wait() here: the result is not in place when the work ends.
  [[nodiscard]] bool has_more_to_do() const { return after_ != nullptr; }
  [[nodiscard]] const Work& work() const { return work_; }
  void then(std::function<void()> after) { after_ = std::move(after); }

  /// Throws what went wrong, with the label; DEADLINE leaves it pending.
  void wait(const Host& host, int64_t timeout_ns = -1);

 private:
  Work work_;
  std::string label_;
  std::function<void()> after_;
};

/// Waits for all, at most so long together, and forgets how they ended. Throws DEADLINE if one is still
/// running: its memory may not be touched.
class Settling {
 public:
  Settling(const Host& host, int64_t timeout_ns);
  void wait(Pending& pending) const;
  /// Of the time; negative: no limit.
  [[nodiscard]] int64_t left_ns() const;

 private:
  Host host_;
  int64_t timeout_ns_, deadline_ns_;
};

class Transport {
 public:
  Transport(const Host& host, ciuic_device device, std::string who)
      : host_(host), device_(device), who_(std::move(who)), ops_(host) {}

  /// Throws UNIMPLEMENTED unless the group can sum this type; ALL_GATHER it for values.
  void check_sums(const ciuic_group& group, ciuic_dtype dtype) const;
  void check_gathers(const ciuic_group& group, ciuic_dtype dtype) const;

  /// All in place. `edges` are the parts of `flat`, one a rank.
  [[nodiscard]] Pending all_reduce(const ciuic_group& group, const Tensor& flat,
                                   const std::string& label, const ciuic_stream* stream) const;
  /// Afterwards only this rank's part of `flat` means anything.
  [[nodiscard]] Pending reduce_scatter(const ciuic_group& group, const Tensor& flat,
                                       const std::vector<int64_t>& edges, const std::string& label,
                                       const ciuic_stream* stream) const;
  /// `own` is this rank's part, in `flat` or elsewhere.
  [[nodiscard]] Pending all_gather(const ciuic_group& group, const Tensor& own, const Tensor& flat,
                                   const std::vector<int64_t>& edges, const std::string& label,
                                   const ciuic_stream* stream) const;
  /// Rank r gets range to[r] of every rank's `flat`; they lie in `received` in rank order.
  [[nodiscard]] Pending exchange(const ciuic_group& group, const Tensor& flat,
                                 const std::vector<sharding::Range>& to, const Tensor& received,
                                 const std::string& label, const ciuic_stream* stream) const;

 private:
  [[nodiscard]] uint64_t capabilities(const ciuic_group& group, uint32_t op,
                                      ciuic_dtype dtype) const;
  [[nodiscard]] bool can(const ciuic_group& group, uint32_t op, ciuic_dtype dtype,
                         uint64_t bit) const {
    return (capabilities(group, op, dtype) & bit) != 0;
  }
  [[nodiscard]] Pending submit(const ciuic_group& group, ciuic_collective& c,
                               const std::string& label, const ciuic_stream* stream) const;
  [[nodiscard]] Pending padded_reduce_scatter(const ciuic_group& group, const Tensor& flat,
                                              const std::vector<int64_t>& edges,
                                              const std::string& label,
                                              const ciuic_stream* stream) const;

  Host host_;
  ciuic_device device_;
  std::string who_;
  TensorOps ops_;
  mutable uint64_t sequence_ = 0;  // for reports
};

}  // namespace ciuic::plugins::stages
