// SPDX-License-Identifier: MIT
#include "core/generate/sampler.h"

#include <algorithm>
#include <cmath>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

struct Candidate {
  int64_t token;
  double weight;  // its logit, and then exp of the scaled one
};

bool is_more_likely(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

// The most likely first, and no more than top_k.
void keep_best(std::vector<Candidate>& all, int64_t top_k) {
  const auto count = static_cast<int64_t>(all.size());
  const auto kept = all.begin() + (top_k == 0 ? count : std::min(top_k, count));
  std::partial_sort(all.begin(), kept, all.end(), is_more_likely);
  all.erase(kept, all.end());
}

double sum_of(const std::vector<Candidate>& all) {
  double sum = 0;
  for (const Candidate& c : all) {
    sum += c.weight;
  }
  return sum;
}

void keep_nucleus(std::vector<Candidate>& all, double top_p) {
  const double wanted = top_p * sum_of(all);
  double sum = 0;
  size_t kept = 0;
  while (kept < all.size() && (kept == 0 || sum < wanted)) {
    sum += all[kept++].weight;
  }
  all.resize(kept);
}

}  // namespace

int64_t Sampler::pick(std::span<const float> logits, const Sampling& sampling) {
  std::vector<Candidate> all;
  all.reserve(candidates_.size());
  for (const int64_t token : candidates_) {
    const double logit = logits[static_cast<size_t>(token)];
    if (!std::isnan(logit)) {
      all.push_back({token, logit});
    }
  }
  const auto best = std::min_element(all.begin(), all.end(), is_more_likely);
  if (best == all.end() || !std::isfinite(best->weight)) {
    throw Failure(ExitCode::Numbers, "the model's logits are not finite",
                  "its weights are damaged, or its training went bad");
  }
  if (sampling.temperature == 0) {
    return best->token;
  }
  const auto [likeliest, most] = *best;
  if (sampling.top_k > 0 || sampling.top_p < 1) {
    keep_best(all, sampling.top_k);
  }
  for (Candidate& c : all) {
    c.weight = std::exp((c.weight - most) / sampling.temperature);
  }
  if (sampling.top_p < 1) {
    keep_nucleus(all, sampling.top_p);
  }
  // 53 bits, as the standard library's distributions differ between its makers.
  double left = static_cast<double>(random_() >> 11) * 0x1p-53 * sum_of(all);
  for (const Candidate& c : all) {
    left -= c.weight;
    if (left < 0) {
      return c.token;
    }
  }
  return likeliest;  // what rounding left over
}

}  // namespace ciuic::core
