// SPDX-License-Identifier: MIT
//
// The function table of a work that stands around another one.
#pragma once

#include <ciuic/abi/work.h>

namespace ciuic::core {

/// Makes tables of W's static functions, which are named as the ABI names them. W may keep them
/// private and befriend this.
template <typename W>
class WorkTable {
 public:
  /// What the inner work lacks, the outer one lacks.
  static const ciuic_work_ops* around(const ciuic_work_ops& inner) {
    const bool has_votes = CIUIC_CAN(&inner, votes);
    const bool has_times = CIUIC_CAN(&inner, times);
    return has_votes ? (has_times ? table<true, true>() : table<true, false>())
                     : (has_times ? table<false, true>() : table<false, false>());
  }

 private:
  template <bool HasVotes, bool HasTimes>
  static const ciuic_work_ops* table() {
    static constexpr ciuic_work_ops ops{sizeof(ciuic_work_ops),
                                        0,
                                        &W::test,
                                        &W::wait,
                                        &W::stream_wait,
                                        &W::on_done,
                                        &W::retain,
                                        &W::release,
                                        HasVotes ? &W::votes : nullptr,
                                        HasTimes ? &W::times : nullptr};
    return &ops;
  }
};

}  // namespace ciuic::core
