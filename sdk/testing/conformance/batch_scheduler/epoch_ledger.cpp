// SPDX-License-Identifier: MIT
#include "epoch_ledger.hpp"

#include <iterator>

namespace ciuic::testing {

void EpochLedger::add(const Plan& plan, const std::string& what) {
  for (const ciuic_batch_item& item : plan.items) {
    std::map<uint64_t, Range>& ranges = served_[item.sample];
    const uint64_t end = item.offset + item.length;
    auto next = ranges.lower_bound(item.offset);
    auto clash = next != ranges.end() && next->first < end ? next : ranges.end();
    if (clash == ranges.end() && next != ranges.begin() &&
        std::prev(next)->second.end > item.offset) {
      clash = std::prev(next);
    }
    require(clash == ranges.end(), what + ": " + to_text(item) + " serves tokens of sample " +
                                       std::to_string(item.sample) + " again; served before by " +
                                       (clash == ranges.end() ? "" : clash->second.by) +
                                       ". Expected: each sample exactly once");
    ranges[item.offset] = {end, what + " rank " + std::to_string(item.rank)};
  }
}

uint64_t EpochLedger::served_tokens(uint64_t sample) const {
  uint64_t out = 0;
  const auto found = served_.find(sample);
  if (found != served_.end()) {
    for (const auto& [begin, range] : found->second) {
      out += range.end - begin;
    }
  }
  return out;
}

void EpochLedger::expect_complete(uint64_t end, bool drops_tail, bool truncates) const {
  const uint64_t rows = data_.rows();
  bool tail_began = false;
  for (uint64_t sample = 0; sample < end; ++sample) {
    tail_began = sample % rows == 0 ? false : tail_began;
    const uint64_t length = data_.length(sample);
    const uint64_t expected = truncates && length > kRowTokens ? kRowTokens : length;
    const uint64_t got = served_tokens(sample);
    if (drops_tail && got == 0) {
      tail_began = true;  // and everything up to the epoch's end with it
      continue;
    }
    require(got >= expected && !tail_began,
            "sample " + std::to_string(sample) + " (number " + std::to_string(sample % rows) +
                " of the " + std::to_string(rows) + " of epoch " + std::to_string(sample / rows) +
                "): " + std::to_string(got) + " of its " + std::to_string(length) +
                " tokens were served by the time that two more epochs had gone by. Expected: each "
                "sample once an epoch; a scheduler that leaves some out declares the feature \"" +
                std::string(kDropsTail) + "\" or \"" + kTruncates + "\"");
  }
}

}  // namespace ciuic::testing
