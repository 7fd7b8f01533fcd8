// SPDX-License-Identifier: MIT
//
// The global norm, and who is to blame when it is not finite. Sums of squares are kept in double.
// Where all ranks hold all gradients, each computes the same answer from the same bits. Where some
// are held by smaller groups (experts), one rank of each group adds its part, and the parts are
// summed over the world: every logical element counts once.
#include <cmath>
#include <limits>

#include "gradients.h"

namespace ciuic::plugins::ddp {
namespace {

constexpr uint64_t kNoParam = ~uint64_t{0};

}  // namespace

void Gradients::stats(double grad_scale, const ciuic_stream* stream, ciuic_grad_stats& out) {
  check_flushed();
  drain(stream);
  const std::array<double, 2> total = norm_stats(stream);
  out.norm = std::sqrt(total[0]) * std::abs(grad_scale);
  out.non_finite = static_cast<uint64_t>(total[1]);
  out.first_bad_param = kNoParam;
  out.first_bad_rank = -1;
  if (out.non_finite > 0) {
    out.first_bad_param = first_bad_param(stream);
    out.first_bad_rank = first_bad_rank(out.first_bad_param, stream);
  }
}

std::array<double, 2> Gradients::norm_stats(const ciuic_stream* stream) const {
  ops_.fill(total_stats_, 0, stream);
  for (const Filled& bucket : buckets_) {
    if (is_uniform_ || bucket.group->rank == 0) {
      for (const Tensor& run : bucket.in_norm) {
        ops_.add_stats(run, total_stats_, stream);
      }
    }
  }
  std::array<double, 2> total = ops_.read<2>(total_stats_, stream);
  if (!is_uniform_) {
    reduce_over_world(total.data(), 2, CIUIC_REDUCE_SUM);
  }
  return total;
}

/// The lowest index. Only after bad news, so one at a time will do.
uint64_t Gradients::first_bad_param(const ciuic_stream* stream) const {
  auto found = std::numeric_limits<double>::max();
  for (uint64_t id = 0; id < params_.size(); ++id) {
    if (has_gradient(params_[id]) && (params_[id].flags & CIUIC_PARAM_IN_NORM) != 0) {
      ops_.fill(total_stats_, 0, stream);
      ops_.add_stats(stored_[id].flat, total_stats_, stream);
      if (ops_.read<2>(total_stats_, stream)[1] > 0) {
        found = static_cast<double>(id);
        break;
      }
    }
  }
  if (!is_uniform_) {
    reduce_over_world(&found, 1, CIUIC_REDUCE_MIN);
  }
  return found < std::numeric_limits<double>::max() ? static_cast<uint64_t>(found) : kNoParam;
}

/// The lowest rank that had a non-finite value of its own in the parameter's bucket; -1: none
/// (finite parts, infinite sum).
int32_t Gradients::first_bad_rank(uint64_t param, const ciuic_stream* stream) const {
  if (world_ == 1) {
    return rank_;
  }
  if (!names_bad_rank_) {
    return -1;
  }
  double rank = world_;
  if (param < params_.size() && has_gradient(params_[param]) &&
      ops_.read<2>(buckets_[stored_[param].bucket].own_stats, stream)[1] > 0) {
    rank = rank_;
  }
  reduce_over_world(&rank, 1, CIUIC_REDUCE_MIN);
  return rank < world_ ? static_cast<int32_t>(rank) : -1;
}

void Gradients::reduce_over_world(double* values, int64_t count, uint32_t reduce) const {
  const auto& comm = host_.service<ciuic_comm_service>("ciuic.comm");
  const ciuic_group* group = nullptr;
  host_.check(comm.find(comm.ctx, to_str("control"), &group));
  const Tensor tensor(values, kF64, {count});
  ciuic_collective c{};
  c.struct_size = sizeof(c);
  c.op = CIUIC_OP_ALL_REDUCE;
  c.reduce = reduce;
  c.in = c.out = tensor.ptr();
  c.label = to_str("gradient statistics");
  ciuic_work* work = nullptr;
  host_.check(group->vt->submit(group->self, {&c, 1, sizeof(c)}, nullptr, &work));
  Work(work).wait(host_);
}

}  // namespace ciuic::plugins::ddp
