// SPDX-License-Identifier: MIT
#include "core/data/source_blend.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

/// Whole shares of the period, in proportion to the weights; 0 for a weight of 0.
std::vector<uint32_t> shares_of(const std::vector<double>& weights) {
  constexpr uint32_t kPeriod = SourceBlend::kPeriod;
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<uint32_t> shares(weights.size());
  std::vector<std::pair<double, size_t>> remainders;
  uint32_t given = 0;
  for (size_t k = 0; k < weights.size(); ++k) {
    const double exact = weights[k] / sum * kPeriod;
    shares[k] = weights[k] > 0 ? std::max(1u, static_cast<uint32_t>(exact)) : 0;
    given += shares[k];
    if (weights[k] > 0) {
      remainders.emplace_back(exact - shares[k], k);
    }
  }
  // To the largest remainder first; where small weights were raised to one, from the largest share.
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; given < kPeriod; i = (i + 1) % remainders.size()) {
    ++shares[remainders[i].second];
    ++given;
  }
  for (; given > kPeriod; --given) {
    --*std::max_element(shares.begin(), shares.end());
  }
  return shares;
}

}  // namespace

SourceBlend::SourceBlend(const std::vector<Source>& sources) {
  std::vector<uint64_t> used(sources.size(), 0);
  uint64_t begin = 0;
  while (true) {
    const bool is_over = std::none_of(sources.begin(), sources.end(), [&](const Source& s) {
      return s.most < 0 ||
             used[static_cast<size_t>(&s - sources.data())] < static_cast<uint64_t>(s.most);
    });
    if (is_over) {
      end_ = begin;
      return;
    }
    phases_.push_back(make_phase(sources, begin, used));
    const Phase& phase = phases_.back();
    const uint64_t end = end_of(phase, sources);
    if (end == UINT64_MAX) {
      return;
    }
    // What each source has given up to there: whole periods, and a part of one.
    const uint64_t periods = (end - begin) / kPeriod;
    for (size_t k = 0; k < sources.size(); ++k) {
      used[k] += periods * phase.shares[k];
    }
    for (uint64_t i = 0; i < (end - begin) % kPeriod; ++i) {
      ++used[phase.period[i].source];
    }
    begin = end;
  }
}

SourceBlend::Phase SourceBlend::make_phase(const std::vector<Source>& sources, uint64_t begin,
                                           std::vector<uint64_t> used) {
  std::vector<double> weights;
  for (size_t k = 0; k < sources.size(); ++k) {
    const bool is_left = sources[k].most >= 0 && used[k] >= static_cast<uint64_t>(sources[k].most);
    weights.push_back(is_left ? 0 : sources[k].weight);
  }
  Phase phase{begin, std::move(used), shares_of(weights), {}};
  std::vector<uint32_t> taken(sources.size(), 0);
  phase.period.reserve(kPeriod);
  for (int64_t i = 0; i < kPeriod; ++i) {
    size_t best = 0;
    int64_t most_behind = INT64_MIN;
    for (size_t k = 0; k < sources.size(); ++k) {
      const int64_t behind =
          int64_t{phase.shares[k]} * (i + 1) - int64_t{taken[k]} * int64_t{kPeriod};
      if (taken[k] < phase.shares[k] && behind > most_behind) {
        best = k;
        most_behind = behind;
      }
    }
    phase.period.push_back({taken[best]++, static_cast<uint16_t>(best)});
  }
  return phase;
}

/// The first sample that would be one too many of some source.
uint64_t SourceBlend::end_of(const Phase& phase, const std::vector<Source>& sources) {
  uint64_t end = UINT64_MAX;
  for (size_t k = 0; k < sources.size(); ++k) {
    if (sources[k].most < 0 || phase.shares[k] == 0) {
      continue;
    }
    const uint64_t left = static_cast<uint64_t>(sources[k].most) - phase.used[k];
    const auto at = std::find_if(phase.period.begin(), phase.period.end(), [&](const Place& p) {
      return p.source == k && p.before == left % phase.shares[k];
    });
    end = std::min(end, phase.begin + left / phase.shares[k] * kPeriod +
                            static_cast<uint64_t>(at - phase.period.begin()));
  }
  return end;
}

SourceBlend::Pick SourceBlend::pick_in(const Phase& phase, uint64_t sample) {
  const uint64_t inside = sample - phase.begin;
  const Place& place = phase.period[inside % kPeriod];
  return {place.source,
          phase.used[place.source] + inside / kPeriod * phase.shares[place.source] + place.before};
}

SourceBlend::Pick SourceBlend::pick(uint64_t sample) const {
  if (sample >= end_) {
    throw Failure(ExitCode::Usage,
                  "data.sources are used up: each has had its `repeat`, " + std::to_string(end_) +
                      " samples in all",
                  "train fewer steps, or raise a source's repeat");
  }
  const auto behind = std::upper_bound(phases_.begin(), phases_.end(), sample,
                                       [](uint64_t s, const Phase& p) { return s < p.begin; });
  return pick_in(*(behind - 1), sample);
}

}  // namespace ciuic::core
