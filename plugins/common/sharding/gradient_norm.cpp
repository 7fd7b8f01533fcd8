// SPDX-License-Identifier: MIT
#include "sharding/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace ciuic::plugins::stages {
namespace {

constexpr uint64_t kNoParam = ~uint64_t{0};
constexpr double kNone = std::numeric_limits<double>::max();

/// Calls body(x) for every element, as a double.
template <typename Body>
void each_element(const TensorOps& ops, const Tensor& flat, const ciuic_stream* stream,
                  const Body& body) {
  const ciuic_dl& t = flat.c().t;
  const int64_t count = num_elements(flat.c());
  if (t.device.type == CIUIC_DEVICE_CPU && same(t.dtype, kF32)) {
    const auto* x = static_cast<const float*>(t.data);
    for (int64_t i = 0; i < count; ++i) {
      body(static_cast<double>(x[i]));
    }
    return;
  }
  constexpr int64_t kChunk = 4096;  // the service converts other types and devices
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t n = std::min(kChunk, count - begin);
    const auto values = ops.read<kChunk>(slice(flat, {begin, begin + n}), stream, n);
    for (int64_t i = 0; i < n; ++i) {
      body(values[static_cast<size_t>(i)]);
    }
  }
}

}  // namespace

GradientNorm::GradientNorm(const Host& host, ciuic_device device, const Settings& settings,
                           const Layout& layout, const Gradients& gradients, int32_t rank,
                           int32_t world)
    : host_(host),
      settings_(settings),
      layout_(layout),
      gradients_(gradients),
      rank_(rank),
      world_(world),
      ops_(host),
      memory_(host, device, 2 * sizeof(double)),
      stats_(memory_.data(), kF64, {2}, device) {
  for (const Block& block : layout.blocks()) {
    const bool is_everywhere = block.parts == 1 && block.group->size == world;
    is_uniform_ = is_uniform_ && (is_everywhere || !block.bucket.is_trained);
  }
}

GradientNorm::Wanted::Wanted(const ciuic_grad_request& request)
    : is_all_(!CIUIC_CAN(&request, params)) {
  if (!is_all_) {
    params_ = {request.params, request.num_params};
  }
}

bool GradientNorm::Wanted::operator()(uint64_t param) const {
  return is_all_ || std::binary_search(params_.begin(), params_.end(), static_cast<int64_t>(param));
}

void GradientNorm::compute(const ciuic_grad_request& request, const ciuic_stream* stream,
                           ciuic_grad_stats& out) const {
  if (request.norm < CIUIC_NORM_L2 || request.norm > CIUIC_NORM_MAX) {
    throw Error(CIUIC_UNIMPLEMENTED,
                settings_.who + " gives the norms L2 (1), L1 (2) and MAX (3), asked for norm " +
                    std::to_string(request.norm));
  }
  const Wanted wanted(request);
  const bool is_l2 = request.norm == CIUIC_NORM_L2;
  const Total total = is_l2 && !gradients_.is_tree() ? squares(wanted, stream)
                                                     : scanned(wanted, request.norm, stream);
  out.norm = (is_l2 ? std::sqrt(total.value) : total.value) * std::abs(request.grad_scale);
  out.non_finite = static_cast<uint64_t>(total.non_finite);
  out.first_bad_param = kNoParam;
  out.first_bad_rank = -1;
  if (out.non_finite > 0) {
    out.norm = std::numeric_limits<double>::quiet_NaN();
    out.first_bad_param = first_bad_param(wanted, stream);
    out.first_bad_rank = first_bad_rank(out.first_bad_param, stream);
  }
}

/// Calls body(param, gradient) for the ranges that this rank answers for.
template <typename Body>
void GradientNorm::each_counted(const Wanted& wanted, const Body& body) const {
  for (size_t b = 0; b < layout_.blocks().size(); ++b) {
    const Block& block = layout_.blocks()[b];
    if (!block.bucket.is_trained || (block.replica != 0 && !is_uniform_)) {
      continue;
    }
    const int64_t first = block.own_range().begin;
    for (const Segment& s : block.own) {
      const bool is_counted = (layout_.params()[s.param].flags & CIUIC_PARAM_IN_NORM) != 0;
      if (is_counted && s.begin < s.end && wanted(s.param)) {
        body(s.param, slice(gradients_.own(b), {s.at - first, s.at - first + s.end - s.begin}));
      }
    }
  }
}

GradientNorm::Total GradientNorm::squares(const Wanted& wanted, const ciuic_stream* stream) const {
  ops_.fill(stats_, 0, stream);
  each_counted(wanted, [&](uint64_t, const Tensor& part) { ops_.add_stats(part, stats_, stream); });
  std::array<double, 2> total = ops_.read<2>(stats_, stream);
  if (is_shared()) {
    reduce(total.data(), kF64, 2, CIUIC_REDUCE_SUM);
  }
  return {total[0], total[1]};
}

/// Element by element: L1 and MAX, for which the service has no sum; and exact sums.
GradientNorm::Total GradientNorm::scanned(const Wanted& wanted, uint32_t norm,
                                          const ciuic_stream* stream) const {
  sharding::ExactSum sum;
  Total total;
  each_counted(wanted, [&](uint64_t, const Tensor& part) {
    each_element(ops_, part, stream, [&](double x) {
      if (!std::isfinite(x)) {
        total.non_finite += 1;
      } else if (norm == CIUIC_NORM_MAX) {
        total.value = std::max(total.value, std::abs(x));
      } else if (const double y = norm == CIUIC_NORM_L2 ? x * x : std::abs(x); std::isfinite(y)) {
        sum.add(y);
      } else {
        total.value = y;  // the square of a double may overflow: the sum is infinite
      }
    });
  });
  if (is_shared()) {
    reduce(&total.non_finite, kF64, 1, CIUIC_REDUCE_SUM);
    reduce(&total.value, kF64, 1, CIUIC_REDUCE_MAX);
  }
  if (norm == CIUIC_NORM_MAX || std::isinf(total.value)) {
    return total;
  }
  if (is_shared()) {
    sharding::ExactSum::Limbs limbs = sum.limbs();
    reduce(limbs.data(), kI64, sharding::ExactSum::kLimbs, CIUIC_REDUCE_SUM);
    sum = {};
    sum.add(limbs);
  }
  total.value = sum.value();
  return total;
}

/// The lowest index. Only after bad news, so one at a time will do.
uint64_t GradientNorm::first_bad_param(const Wanted& wanted, const ciuic_stream* stream) const {
  double found = kNone;
  each_counted(wanted, [&](uint64_t param, const Tensor& part) {
    ops_.fill(stats_, 0, stream);
    ops_.add_stats(part, stats_, stream);
    if (ops_.read<2>(stats_, stream)[1] > 0) {
      found = std::min(found, static_cast<double>(param));
    }
  });
  if (is_shared()) {
    reduce(&found, kF64, 1, CIUIC_REDUCE_MIN);
  }
  return found < kNone ? static_cast<uint64_t>(found) : kNoParam;
}

/// The lowest rank that had a non-finite value of its own; -1: none (finite parts, infinite sum).
int32_t GradientNorm::first_bad_rank(uint64_t param, const ciuic_stream* stream) const {
  if (world_ == 1) {
    return rank_;
  }
  if (!settings_.name_bad_rank) {
    return -1;
  }
  const bool is_own =
      param < layout_.params().size() && gradients_.brought_non_finite(param, stream);
  double rank = is_own ? rank_ : world_;
  reduce(&rank, kF64, 1, CIUIC_REDUCE_MIN);
  return rank < world_ ? static_cast<int32_t>(rank) : -1;
}

void GradientNorm::reduce(void* values, ciuic_dtype dtype, int64_t count, uint32_t how) const {
  const auto& comm = host_.service<ciuic_comm_service>("ciuic.comm");
  const ciuic_group* group = nullptr;
  host_.check(comm.find(comm.ctx, to_str("control"), &group));
  const Tensor tensor(values, dtype, {count});
  ciuic_collective c{};
  c.struct_size = sizeof(c);
  c.op = CIUIC_OP_ALL_REDUCE;
  c.reduce = how;
  c.in = c.out = tensor.ptr();
  c.label = to_str("gradient statistics");
  ciuic_work* work = nullptr;
  host_.check(group->vt->submit(group->self, {&c, 1, sizeof(c)}, nullptr, &work));
  Work(work).wait(host_);
}

}  // namespace ciuic::plugins::stages
