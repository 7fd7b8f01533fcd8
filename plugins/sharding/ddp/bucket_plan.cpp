// SPDX-License-Identifier: MIT
#include "bucket_plan.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace ciuic::plugins::ddp {
namespace {

/// By parameter: the units that add to its storage. Empty for tied ones, whose units are their
/// root's.
std::vector<std::set<uint32_t>> units_of_storages(ArrayView<ciuic_param> params) {
  std::vector<std::set<uint32_t>> units(params.size());
  for (uint64_t id = 0; id < params.size(); ++id) {
    units[root_of(params, id)].insert(params[id].unit);
  }
  return units;
}

bool is_same_kind(const Bucket& b, const ciuic_param& p) {
  return b.group == p.group && same(b.grad, p.grad) && same(b.reduce, p.reduce);
}

}  // namespace

uint64_t root_of(ArrayView<ciuic_param> params, uint64_t id) {
  for (uint32_t hops = 0; params[id].tied_to >= 0; ++hops) {
    const auto next = static_cast<uint64_t>(params[id].tied_to);
    if (next >= params.size() || hops > params.size()) {
      throw Error(CIUIC_INVALID, "parameter " + std::string(to_view(params[id].name)) +
                                     " is tied to parameter " + std::to_string(next) +
                                     ", which is none or itself");
    }
    id = next;
  }
  return id;
}

bool has_gradient(const ciuic_param& p) {
  return p.tied_to < 0 && (p.flags & CIUIC_PARAM_FROZEN) == 0 && p.num_elements > 0;
}

std::vector<Bucket> plan_buckets(ArrayView<ciuic_param> params, int64_t bucket_bytes) {
  const std::vector<std::set<uint32_t>> units = units_of_storages(params);
  std::vector<std::pair<uint32_t, uint64_t>> order;  // (the unit that completes it, parameter)
  for (uint64_t id = 0; id < params.size(); ++id) {
    if (has_gradient(params[id])) {
      order.emplace_back(*units[id].begin(), id);
    }
  }
  std::sort(order.rbegin(), order.rend());

  std::vector<Bucket> buckets;
  std::vector<size_t> open;  // the bucket being filled, one per kind
  for (const auto& [unit, id] : order) {
    const ciuic_param& p = params[id];
    const int64_t bytes = aligned(bytes_of(p, p.grad));
    auto slot = std::find_if(open.begin(), open.end(),
                             [&](size_t b) { return is_same_kind(buckets[b], p); });
    if (slot == open.end() || buckets[*slot].bytes + bytes > bucket_bytes) {
      buckets.push_back({p.group, p.grad, p.reduce, {}, {}, 0});
      slot = slot == open.end() ? open.insert(slot, 0) : slot;
      *slot = buckets.size() - 1;
    }
    Bucket& bucket = buckets[*slot];
    bucket.params.push_back(id);
    bucket.units.insert(bucket.units.end(), units[id].begin(), units[id].end());
    bucket.bytes += bytes;
  }
  for (Bucket& b : buckets) {
    std::sort(b.units.begin(), b.units.end());
    b.units.erase(std::unique(b.units.begin(), b.units.end()), b.units.end());
  }
  std::stable_sort(buckets.begin(), buckets.end(),
                   [](const Bucket& a, const Bucket& b) { return a.units[0] > b.units[0]; });
  return buckets;
}

Range share_of(int64_t before, int64_t count, int64_t total, int32_t rank, int32_t size) {
  // total / size * rank + remainder spread over the first ranks: no overflow for any real model.
  const auto edge = [&](int64_t r) {
    return total / size * r + std::min<int64_t>(r, total % size);
  };
  const auto inside = [&](int64_t at) { return std::clamp<int64_t>(at - before, 0, count); };
  return {inside(edge(rank)), inside(edge(rank + 1))};
}

}  // namespace ciuic::plugins::ddp
