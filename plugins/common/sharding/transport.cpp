// SPDX-License-Identifier: MIT
#include "sharding/transport.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "sharding/flat.h"

namespace ciuic::plugins::stages {
namespace {

using sharding::Range;

int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<int64_t> counts_of(const std::vector<int64_t>& edges) {
  std::vector<int64_t> counts;
  for (size_t r = 0; r + 1 < edges.size(); ++r) {
    counts.push_back(edges[r + 1] - edges[r]);
  }
  return counts;
}

bool is_even(const std::vector<int64_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [&](int64_t n) { return n == counts[0]; });
}

/// `ranks` equal parts in memory of their own, for a communicator that knows no others.
struct Padded {
  Padded(const Host& host, ciuic_device device, ciuic_dtype dtype, int64_t part, int64_t ranks)
      : part_elements(part),
        buffer(host, device, static_cast<size_t>(part * ranks * dtype_bytes(dtype))),
        all(buffer.data(), dtype, {part * ranks}, device) {}

  /// The first `count` elements of part `r`.
  [[nodiscard]] Tensor part(int64_t r, int64_t count) const {
    return slice(all, {r * part_elements, r * part_elements + count});
  }

  int64_t part_elements;
  Buffer buffer;
  Tensor all;
};

}  // namespace

void Pending::wait(const Host& host, int64_t timeout_ns) {
  try {
    work_.wait(host, timeout_ns);
  } catch (const Error& e) {
    throw Error(e.code(), label_ + ": " + e.what(), e.peer(), e.flags());
  }
  work_ = Work();
  if (const auto after = std::exchange(after_, nullptr)) {
    after();
  }
}

Settling::Settling(const Host& host, int64_t timeout_ns)
    : host_(host),
      timeout_ns_(timeout_ns),
      deadline_ns_(now_ns() + std::max<int64_t>(timeout_ns, 0)) {}

int64_t Settling::left_ns() const {
  return timeout_ns_ > 0 ? std::max<int64_t>(deadline_ns_ - now_ns(), 0) : timeout_ns_;
}

void Settling::wait(Pending& pending) const {
  const int64_t left = left_ns();
  try {
    pending.wait(host_, left);
  } catch (const Error& e) {
    if (e.code() == CIUIC_DEADLINE && left >= 0) {
      throw;
    }  // any other failure is one of a result that nobody wants any more
  }
  pending = Pending();
}

uint64_t Transport::capabilities(const ciuic_group& group, uint32_t op, ciuic_dtype dtype) const {
  const bool is_sum = op == CIUIC_OP_ALL_REDUCE || op == CIUIC_OP_REDUCE_SCATTER;
  uint64_t bits = 0;
  host_.check(group.vt->capabilities(group.self, op, is_sum ? uint32_t{CIUIC_REDUCE_SUM} : 0U,
                                     dtype, device_, &bits));
  return bits;
}

void Transport::check_sums(const ciuic_group& group, ciuic_dtype dtype) const {
  if (!can(group, CIUIC_OP_ALL_REDUCE, dtype, CIUIC_COMM_SUPPORTED)) {
    throw Error(CIUIC_UNIMPLEMENTED, who_ + ": the communicator of group " +
                                         std::string(to_view(group.name)) + " cannot sum " +
                                         dtype_name(dtype));
  }
}

void Transport::check_gathers(const ciuic_group& group, ciuic_dtype dtype) const {
  if (!can(group, CIUIC_OP_ALL_GATHER, dtype, CIUIC_COMM_SUPPORTED)) {
    throw Error(CIUIC_UNIMPLEMENTED, who_ + ": the communicator of group " +
                                         std::string(to_view(group.name)) + " cannot gather " +
                                         dtype_name(dtype));
  }
}

Pending Transport::submit(const ciuic_group& group, ciuic_collective& c, const std::string& label,
                          const ciuic_stream* stream) const {
  c.struct_size = sizeof(c);
  c.sequence = ++sequence_;
  c.label = to_str(label);
  ciuic_work* work = nullptr;
  host_.check(group.vt->submit(group.self, {&c, 1, sizeof(c)}, stream, &work));
  return {Work(work), label};
}

Pending Transport::all_reduce(const ciuic_group& group, const Tensor& flat,
                              const std::string& label, const ciuic_stream* stream) const {
  ciuic_collective c{};
  c.op = CIUIC_OP_ALL_REDUCE;
  c.reduce = CIUIC_REDUCE_SUM;
  c.in = c.out = flat.ptr();
  return submit(group, c, label, stream);
}

Pending Transport::reduce_scatter(const ciuic_group& group, const Tensor& flat,
                                  const std::vector<int64_t>& edges, const std::string& label,
                                  const ciuic_stream* stream) const {
  const uint64_t bits = capabilities(group, CIUIC_OP_REDUCE_SCATTER, flat.c().t.dtype);
  if ((bits & CIUIC_COMM_SUPPORTED) == 0) {
    return all_reduce(group, flat, label, stream);
  }
  const std::vector<int64_t> counts = counts_of(edges);
  if (!is_even(counts) && (bits & CIUIC_COMM_UNEVEN) == 0) {
    return padded_reduce_scatter(group, flat, edges, label, stream);
  }
  const auto rank = static_cast<size_t>(group.rank);
  const Tensor out = slice(flat, {edges[rank], edges[rank + 1]});
  ciuic_collective c{};
  c.op = CIUIC_OP_REDUCE_SCATTER;
  c.reduce = CIUIC_REDUCE_SUM;
  c.in = flat.ptr();
  c.out = out.ptr();
  c.in_counts = is_even(counts) ? nullptr : counts.data();
  return submit(group, c, label, stream);
}

Pending Transport::padded_reduce_scatter(const ciuic_group& group, const Tensor& flat,
                                         const std::vector<int64_t>& edges,
                                         const std::string& label,
                                         const ciuic_stream* stream) const {
  const std::vector<int64_t> counts = counts_of(edges);
  const auto staged =
      std::make_shared<Padded>(host_, device_, flat.c().t.dtype,
                               *std::max_element(counts.begin(), counts.end()), group.size);
  ops_.fill(staged->all, 0, stream);
  for (size_t r = 0; r < counts.size(); ++r) {
    ops_.copy(slice(flat, {edges[r], edges[r + 1]}),
              staged->part(static_cast<int64_t>(r), counts[r]), stream);
  }
  const auto rank = static_cast<size_t>(group.rank);
  const Tensor out = staged->part(group.rank, staged->part_elements);
  ciuic_collective c{};
  c.op = CIUIC_OP_REDUCE_SCATTER;
  c.reduce = CIUIC_REDUCE_SUM;
  c.in = staged->all.ptr();
  c.out = out.ptr();
  Pending pending = submit(group, c, label, stream);
  pending.then([ops = ops_, staged, own = slice(flat, {edges[rank], edges[rank + 1]}),
                r = group.rank, n = counts[rank],
                stream] { ops.copy(staged->part(r, n), own, stream); });
  return pending;
}

Pending Transport::all_gather(const ciuic_group& group, const Tensor& own, const Tensor& flat,
                              const std::vector<int64_t>& edges, const std::string& label,
                              const ciuic_stream* stream) const {
  const std::vector<int64_t> counts = counts_of(edges);
  ciuic_collective c{};
  c.op = CIUIC_OP_ALL_GATHER;
  if (is_even(counts) || can(group, CIUIC_OP_ALL_GATHER, flat.c().t.dtype, CIUIC_COMM_UNEVEN)) {
    c.in = own.ptr();
    c.out = flat.ptr();
    c.out_counts = is_even(counts) ? nullptr : counts.data();
    return submit(group, c, label, stream);
  }
  const auto staged =
      std::make_shared<Padded>(host_, device_, flat.c().t.dtype,
                               *std::max_element(counts.begin(), counts.end()), group.size);
  ops_.fill(staged->all, 0, stream);
  const Tensor in = staged->part(group.rank, staged->part_elements);
  ops_.copy(own, staged->part(group.rank, num_elements(own.c())), stream);
  c.in = in.ptr();
  c.out = staged->all.ptr();
  Pending pending = submit(group, c, label, stream);
  pending.then([ops = ops_, staged, flat, edges, counts, stream] {
    for (size_t r = 0; r < counts.size(); ++r) {
      ops.copy(staged->part(static_cast<int64_t>(r), counts[r]),
               slice(flat, {edges[r], edges[r + 1]}), stream);
    }
  });
  return pending;
}

Pending Transport::exchange(const ciuic_group& group, const Tensor& flat,
                            const std::vector<Range>& to, const Tensor& received,
                            const std::string& label, const ciuic_stream* stream) const {
  const uint64_t bits = capabilities(group, CIUIC_OP_ALL_TO_ALL, flat.c().t.dtype);
  if ((bits & CIUIC_COMM_UNEVEN) == 0) {
    throw Error(CIUIC_UNIMPLEMENTED,
                who_ +
                    ": any_world needs ALL_TO_ALL with uneven parts, which the communicator of " +
                    "group " + std::string(to_view(group.name)) + " does not offer for " +
                    dtype_name(flat.c().t.dtype));
  }
  std::vector<int64_t> counts;
  std::vector<int64_t> offsets;
  for (const Range& r : to) {
    counts.push_back(r.size());
    offsets.push_back(r.begin);
  }
  const std::vector<int64_t> own(to.size(), to[static_cast<size_t>(group.rank)].size());
  ciuic_collective c{};
  c.op = CIUIC_OP_ALL_TO_ALL;
  c.in = flat.ptr();
  c.out = received.ptr();
  c.in_counts = counts.data();
  c.in_offsets = offsets.data();
  c.out_counts = own.data();
  return submit(group, c, label, stream);
}

}  // namespace ciuic::plugins::stages
