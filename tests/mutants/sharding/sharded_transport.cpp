// SPDX-License-Identifier: MIT
//
// Gathers, reductions and the norm of a plain sharding.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include <ciuic/abi/services.h>

#include "sharded.h"

namespace ciuic::mutants {

Sharded::Memory Sharded::take(ciuic_dtype dtype, int64_t elements) const {
  Memory m;
  m.buffer = Buffer(host(), device_, static_cast<size_t>(elements * dtype_bytes(dtype)));
  m.flat = Tensor(m.buffer.data(), dtype, {elements}, device_);
  return m;
}

Tensor Sharded::part(const Tensor& flat, Piece piece) const {
  const ciuic_dl& t = flat.c().t;
  char* data = static_cast<char*>(t.data);
  return Tensor(piece.size() == 0 ? nullptr : data + piece.begin * dtype_bytes(t.dtype), t.dtype,
                {piece.size()}, device_);
}

void Sharded::fill(const Tensor& t, double value) const {
  const auto& ops = host().service<ciuic_tensor_service>("ciuic.tensor");
  host().check(ops.fill(ops.ctx, t.ptr(), value, nullptr));
}

void Sharded::copy(const Tensor& from, const Tensor& to) const {
  const auto& ops = host().service<ciuic_tensor_service>("ciuic.tensor");
  host().check(ops.copy(ops.ctx, from.ptr(), to.ptr(), nullptr));
}

void Sharded::submit(const ciuic_group& group, ciuic_collective c) const {
  c.struct_size = sizeof(c);
  ciuic_work* work = nullptr;
  try {
    host().check(group.vt->submit(group.self, {&c, 1, sizeof(c)}, nullptr, &work));
    const bool is_gradient = c.op == CIUIC_OP_REDUCE_SCATTER;
    if (is(Fault::kReusesBucket) && is_gradient) {
      std::memset(tensor_data(*c.in), 0, static_cast<size_t>(tensor_bytes(*c.in)));
    }
    Work(work).wait(host());
  } catch (const Error& e) {
    if (!is(Fault::kSwallowsErrors)) {
      throw;
    }
    host().warn(e.what());
  }
}

/// Parts by rank, of uneven sizes.
void Sharded::gather(uint64_t root) {
  const ciuic_param& p = params_[root];
  Stored& s = stored_[root];
  const ciuic_group& group = group_of(p);
  s.whole_value = take(p.value, p.num_elements);
  if (traits_.is_replicated || group.size == 1) {
    copy(s.value.flat, s.whole_value.flat);
    return;
  }
  std::vector<int64_t> counts;
  for (int32_t r = 0; r < group.size; ++r) {
    counts.push_back(piece_of(p, r, group.size).size());
  }
  ciuic_collective c{};
  c.op = CIUIC_OP_ALL_GATHER;
  c.in = s.value.flat.ptr();
  c.out = s.whole_value.flat.ptr();
  c.out_counts = counts.data();
  submit(group, c);
}

bool Sharded::is_last(uint64_t root) const {
  for (uint64_t id = root + 1; id < params_.size(); ++id) {
    if (params_[id].tied_to < 0 && (params_[id].flags & CIUIC_PARAM_FROZEN) == 0) {
      return false;
    }
  }
  return true;
}

/// In the reduce type; a parameter that no use wrote has a gradient of zero.
void Sharded::reduce(uint64_t root) {
  const ciuic_param& p = params_[root];
  Stored& s = stored_[root];
  const ciuic_group& group = group_of(p);
  s.is_reduced = true;
  if (is(Fault::kForgetsLastParameter) && is_last(root)) {
    fill(s.grad.flat, 0);
    return;
  }
  if (!s.is_written) {
    s.whole_grad = take(p.grad, p.num_elements);
    fill(s.whole_grad.flat, 0);
  }
  const auto& ops = host().service<ciuic_tensor_service>("ciuic.tensor");
  double stats[2] = {0, 0};
  const Tensor out(stats, kF64, {2});
  host().check(ops.stats(ops.ctx, s.whole_grad.flat.ptr(), out.ptr(), nullptr));
  s.bad = static_cast<uint64_t>(stats[1]);

  const Memory wire = take(p.reduce, p.num_elements);
  const Memory sum = take(p.reduce, s.own.size());
  copy(s.whole_grad.flat, wire.flat);
  std::vector<int64_t> counts;
  for (int32_t r = 0; r < group.size; ++r) {
    counts.push_back(piece_of(p, r, group.size).size());
  }
  ciuic_collective c{};
  c.op = traits_.is_replicated ? CIUIC_OP_ALL_REDUCE : CIUIC_OP_REDUCE_SCATTER;
  c.reduce = is(Fault::kAveragesGradients) ? CIUIC_REDUCE_AVG : CIUIC_REDUCE_SUM;
  c.in = wire.flat.ptr();
  c.out = sum.flat.ptr();
  c.in_counts = traits_.is_replicated ? nullptr : counts.data();
  submit(group, c);
  copy(sum.flat, s.grad.flat);
  s.whole_grad = Memory();
}

void Sharded::sum_over_world(double* values, int64_t count, uint32_t reduce) const {
  const auto& comm = host().service<ciuic_comm_service>("ciuic.comm");
  const ciuic_group* group = nullptr;
  host().check(comm.find(comm.ctx, to_str("control"), &group));
  const Tensor tensor(values, kF64, {count});
  ciuic_collective c{};
  c.op = CIUIC_OP_ALL_REDUCE;
  c.reduce = reduce;
  c.in = c.out = tensor.ptr();
  submit(*group, c);
}

/// Each rank adds its shards; of replicas, the group's first rank does.
void Sharded::grad_stats(const ciuic_grad_request& request, const ciuic_stream*,
                         ciuic_grad_stats& out) {
  check_set_up();
  if (!is_reduced_) {
    throw Error(CIUIC_PRECONDITION, "statistics before end_backward");
  }
  if (request.norm != CIUIC_NORM_L2) {
    throw Error(CIUIC_UNIMPLEMENTED, "only the L2 norm");
  }
  const auto& ops = host().service<ciuic_tensor_service>("ciuic.tensor");
  double sums[2] = {0, 0};
  double first_bad = std::numeric_limits<double>::max();
  for (const ciuic_param& p : params_) {
    const uint64_t root = root_of(p.id);
    const bool counts = is(Fault::kNormCountsTiedTwice) ? true : p.tied_to < 0;
    const bool is_mine = !traits_.is_replicated || group_of(p).rank == 0;
    const bool is_frozen = (params_[root].flags & CIUIC_PARAM_FROZEN) != 0;
    const std::span asked(request.params, request.num_params);
    const bool is_asked =
        request.params == nullptr || is(Fault::kNormOfAll) ||
        std::find(asked.begin(), asked.end(), static_cast<int64_t>(p.id)) != asked.end();
    if (!counts || !is_mine || is_frozen || !is_asked || (p.flags & CIUIC_PARAM_IN_NORM) == 0) {
      continue;
    }
    double own[2] = {0, 0};
    const Tensor tensor(own, kF64, {2});
    host().check(ops.stats(ops.ctx, stored_[root].grad.flat.ptr(), tensor.ptr(), nullptr));
    sums[0] += own[0];
    sums[1] += own[1];
    if (own[1] > 0) {
      first_bad = std::min(first_bad, static_cast<double>(p.id));
    }
  }
  if (!is(Fault::kNormIsLocal)) {
    sum_over_world(sums, 2, CIUIC_REDUCE_SUM);
    sum_over_world(&first_bad, 1, CIUIC_REDUCE_MIN);
  }
  out.norm = std::sqrt(sums[0]) * std::abs(request.grad_scale);
  out.non_finite = static_cast<uint64_t>(sums[1]);
  out.first_bad_param = ~uint64_t{0};
  out.first_bad_rank = -1;
  if (out.non_finite > 0) {
    out.first_bad_param = static_cast<uint64_t>(first_bad);
    double rank = stored_[out.first_bad_param].bad > 0 ? rank_ : world_;
    sum_over_world(&rank, 1, CIUIC_REDUCE_MIN);
    out.first_bad_rank = rank < world_ ? static_cast<int32_t>(rank) : -1;
  }
}

}  // namespace ciuic::mutants
