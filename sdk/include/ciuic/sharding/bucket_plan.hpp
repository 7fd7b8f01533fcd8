// SPDX-License-Identifier: MIT
//
// Which parameters lie and travel together, and in which order: a pure function of the parameters,
// so every rank finds the same answer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/abi/optimizer.h>
#include <ciuic/view.hpp>

namespace ciuic::sharding {

/// Every parameter of a bucket starts on a multiple of this many bytes, in each of its types.
constexpr int64_t kAlignmentBytes = 64;

inline bool is_frozen(const ciuic_param& p) noexcept { return (p.flags & CIUIC_PARAM_FROZEN) != 0; }
/// Has storage of its own that an optimizer moves.
inline bool is_trained(const ciuic_param& p) noexcept { return p.tied_to < 0 && !is_frozen(p); }
inline bool has_master(const ciuic_param& p) noexcept {
  return is_trained(p) && !same(p.master, p.value);
}

/// The parameter whose storage parameter `id` uses: itself, or the one it is tied to.
inline uint64_t root_of(ArrayView<ciuic_param> params, uint64_t id) {
  for (uint32_t hops = 0; params[id].tied_to >= 0; ++hops) {
    const auto next = static_cast<uint64_t>(params[id].tied_to);
    if (next >= params.size() || hops > params.size()) {
      raise(Error(CIUIC_INVALID, "parameter " + std::string(to_view(params[id].name)) +
                                     " is tied to parameter " + std::to_string(next) +
                                     ", which is none or itself"));
    }
    id = next;
  }
  return id;
}

/// Parameters of one kind, one behind the other in flat memory.
struct Bucket {
  uint32_t group = 0, sum_group = 0;
  bool is_trained = false;
  ciuic_dtype value{}, grad{}, reduce{}, master{};
  std::vector<uint64_t> params;  // in the order of their memory
  std::vector<int64_t> offsets;  // their first elements
  std::vector<uint32_t> units;   // ascending: all that use these parameters
  int64_t elements = 0;          // with padding
};

enum class BucketSpan { kUnits, kOneUnit };

namespace detail {

/// By parameter: the units that use its storage. Empty for tied ones, whose units are their root's.
inline std::vector<std::set<uint32_t>> units_of_storages(ArrayView<ciuic_param> params) {
  std::vector<std::set<uint32_t>> units(params.size());
  for (uint64_t id = 0; id < params.size(); ++id) {
    units[root_of(params, id)].insert(params[id].unit);
  }
  return units;
}

inline bool is_same_kind(const Bucket& b, const ciuic_param& p) {
  return b.group == p.group && b.sum_group == 0 && p.sum_group == 0 &&
         b.is_trained == is_trained(p) && same(b.value, p.value) && same(b.grad, p.grad) &&
         same(b.reduce, p.reduce) && same(b.master, p.master);
}

/// So many elements are a multiple of kAlignmentBytes in every type of the bucket.
inline int64_t alignment_of(const Bucket& b) {
  int64_t narrowest = kAlignmentBytes;
  for (const ciuic_dtype type : {b.value, b.grad, b.reduce, b.master}) {
    narrowest = std::min(narrowest, std::max<int64_t>(dtype_bytes(type), 1));
  }
  return kAlignmentBytes / narrowest;
}
inline int64_t padded(const Bucket& b, const ciuic_param& p) {
  const int64_t step = alignment_of(b);
  return (p.num_elements + step - 1) / step * step;
}

inline Bucket empty_bucket(const ciuic_param& p) {
  return {p.group, p.sum_group, is_trained(p), p.value, p.grad, p.reduce, p.master, {}, {}, {}, 0};
}

}  // namespace detail

/// Buckets in the order in which backward completes them, last unit first. A bucket never splits a
/// parameter, and one larger than `bucket_bytes` (of its gradient) has a bucket to itself, as has one
/// that is summed over a second group: so both sides of that sum cut it alike. With kOneUnit all
/// parameters of a bucket are used by the same units. A tied parameter is complete after the first of
/// its units, which backward reaches last.
inline std::vector<Bucket> plan_buckets(ArrayView<ciuic_param> params, int64_t bucket_bytes,
                                        BucketSpan span) {
  const std::vector<std::set<uint32_t>> units = detail::units_of_storages(params);
  std::vector<std::pair<uint32_t, uint64_t>> order;  // (the unit that completes it, parameter)
  for (uint64_t id = 0; id < params.size(); ++id) {
    if (params[id].tied_to < 0) {
      order.emplace_back(*units[id].begin(), id);
    }
  }
  std::sort(order.rbegin(), order.rend());

  std::vector<Bucket> buckets;
  std::vector<size_t> open;  // the bucket being filled, one a kind
  for (const auto& [unit, id] : order) {
    const ciuic_param& p = params[id];
    const std::vector<uint32_t> its_units(units[id].begin(), units[id].end());
    auto slot = std::find_if(open.begin(), open.end(), [&](size_t b) {
      return detail::is_same_kind(buckets[b], p) &&
             (span == BucketSpan::kUnits || buckets[b].units == its_units);
    });
    Bucket fresh = detail::empty_bucket(p);
    const int64_t elements = detail::padded(fresh, p);
    const bool is_full = slot != open.end() &&
                         (buckets[*slot].elements + elements) * dtype_bytes(p.grad) > bucket_bytes;
    if (slot == open.end() || is_full) {
      buckets.push_back(std::move(fresh));
      slot = slot == open.end() ? open.insert(slot, 0) : slot;
      *slot = buckets.size() - 1;
    }
    Bucket& bucket = buckets[*slot];
    bucket.params.push_back(id);
    bucket.offsets.push_back(bucket.elements);
    bucket.elements += elements;
    std::vector<uint32_t> all;
    std::set_union(bucket.units.begin(), bucket.units.end(), its_units.begin(), its_units.end(),
                   std::back_inserter(all));
    bucket.units = std::move(all);
  }
  std::stable_sort(buckets.begin(), buckets.end(),
                   [](const Bucket& a, const Bucket& b) { return a.units[0] > b.units[0]; });
  return buckets;
}

}  // namespace ciuic::sharding
