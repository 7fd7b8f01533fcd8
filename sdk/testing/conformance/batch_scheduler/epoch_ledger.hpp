// SPDX-License-Identifier: MIT
//
// Who was served what: token ranges of samples over many plans. Nothing may be served twice; what
// is missing is looked up at the end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler_bench.hpp"

namespace ciuic::testing {

class EpochLedger {
 public:
  explicit EpochLedger(ReferenceData& data) : data_(data) {}

  /// Fails on a token that was served before.
  void add(const Plan& plan, const std::string& what);

  /// Fails unless every token of samples [0, end) was served, but for what the scheduler says that
  /// it drops.
  void expect_complete(uint64_t end, bool drops_tail, bool truncates) const;

  [[nodiscard]] uint64_t served_tokens(uint64_t sample) const;

 private:
  struct Range {
    uint64_t end;
    std::string by;
  };
  ReferenceData& data_;
  std::map<uint64_t, std::map<uint64_t, Range>> served_;  // sample -> begin -> range
};

}  // namespace ciuic::testing
