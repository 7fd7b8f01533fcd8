// SPDX-License-Identifier: MIT
// Causal attention: choice of the path, LibTorch's fused one, and the plain reference.
#include "core/model/attention.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/triu.h>

#include "core/model/kernels/blocked_attention.h"
#include "core/model/kernels/dtypes.h"

namespace ciuic::core {
namespace {

at::Tensor heads_first(const at::Tensor& x_BTHd) { return x_BTHd.transpose(1, 2); }

// The fused kernel asks for values as wide as queries and keys. Zeros change neither outputs nor
// gradients.
at::Tensor widened(const at::Tensor& x_BTHd, int64_t width) {
  return x_BTHd.size(3) == width ? x_BTHd
                                 : at::constant_pad_nd(x_BTHd, {0, width - x_BTHd.size(3)}, 0);
}

at::Tensor fused_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         double scale, at::Tensor* log_sum) {
  const int64_t width = std::max(q.size(3), v.size(3));
  const auto wide = [&](const at::Tensor& x) { return heads_first(widened(x, width)); };
  auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(wide(q), wide(k), wide(v), 0.0,
                                                                    /*is_causal=*/true, {}, scale);
  *log_sum = lse;
  return heads_first(out).narrow(3, 0, v.size(3)).contiguous();
}

AttentionGradient fused_backward(const at::Tensor& dout, const AttentionTape& tape, double scale,
                                 const at::Tensor& dv_out) {
  const int64_t qk_width = tape.q_BTHd.size(3);
  const int64_t v_width = tape.v_BTHd.size(3);
  const int64_t width = std::max(qk_width, v_width);
  const auto wide = [&](const at::Tensor& x) { return heads_first(widened(x, width)); };
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      wide(dout), wide(tape.q_BTHd), wide(tape.k_BTHd), wide(tape.v_BTHd), wide(tape.out_BTHd),
      tape.log_sum_BHT, 0.0,
      /*is_causal=*/true, {}, scale);
  const auto narrow = [](const at::Tensor& x, int64_t size) {
    return heads_first(x).narrow(3, 0, size);
  };
  dv_out.copy_(narrow(dv, v_width));
  return {narrow(dq, qk_width).contiguous(), narrow(dk, qk_width).contiguous()};
}

// All scores at once, masked: [B, H, T, T].
at::Tensor reference_scores(const at::Tensor& q, const at::Tensor& k, double scale) {
  const at::ScalarType dtype = kernels::accumulate_dtype(q.scalar_type());
  const at::Tensor scores =
      at::matmul(heads_first(q).to(dtype), heads_first(k).to(dtype).transpose(2, 3)).mul(scale);
  const at::Tensor future =
      at::triu(at::ones({q.size(1), q.size(1)}, q.options().dtype(at::kBool)), 1);
  return scores.masked_fill(future, -std::numeric_limits<double>::infinity());
}

at::Tensor reference_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             double scale, at::Tensor* log_sum) {
  const at::Tensor scores = reference_scores(q, k, scale);
  *log_sum = scores.logsumexp({3});
  const at::Tensor p = scores.sub(log_sum->unsqueeze(3)).exp();
  return heads_first(at::matmul(p, heads_first(v).to(p.scalar_type())))
      .to(q.scalar_type())
      .contiguous();
}

// With P = softmax(S): dV = P^T dO; dP = dO V^T; dS = P (dP - rowsum(dO O)); dQ = dS K; dK = dS^T
// Q.
AttentionGradient reference_backward(const at::Tensor& dout, const AttentionTape& tape,
                                     double scale, const at::Tensor& dv_out) {
  const at::Tensor p =
      reference_scores(tape.q_BTHd, tape.k_BTHd, scale).sub(tape.log_sum_BHT.unsqueeze(3)).exp();
  const auto wide = [&](const at::Tensor& x) { return heads_first(x).to(p.scalar_type()); };
  const at::Tensor d = wide(dout);
  const at::Tensor row_sum = d.mul(wide(tape.out_BTHd)).sum({3}, true);
  dv_out.copy_(heads_first(at::matmul(p.transpose(2, 3), d)));
  const at::Tensor ds =
      p.mul(at::matmul(d, wide(tape.v_BTHd).transpose(2, 3)).sub(row_sum)).mul(scale);
  const auto narrow = [&](const at::Tensor& x) {
    return heads_first(x).to(dout.scalar_type()).contiguous();
  };
  return {narrow(at::matmul(ds, wide(tape.k_BTHd))),
          narrow(at::matmul(ds.transpose(2, 3), wide(tape.q_BTHd)))};
}

// Whole rows are a batch; other spans are rows of their own, one after another.

at::Tensor part_of(const at::Tensor& x_BTHd, const Rows::Span& span) {
  return x_BTHd.narrow(0, span.row, 1).narrow(1, span.begin, span.length);
}
at::Tensor log_sums_of(const at::Tensor& log_sum_BHT, const Rows::Span& span) {
  return log_sum_BHT.narrow(0, span.row, 1).narrow(2, span.begin, span.length);
}

using Forward = at::Tensor (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&, double,
                               at::Tensor*);
using Backward = AttentionGradient (*)(const at::Tensor&, const AttentionTape&, double,
                                       const at::Tensor&);

at::Tensor forward_by_span(Forward forward, const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, const AttentionRule& rule, at::Tensor* log_sum) {
  if (rule.rows.are_whole()) {
    return forward(q, k, v, rule.scale, log_sum);
  }
  at::Tensor out = at::empty(v.sizes(), v.options());
  *log_sum = at::empty({q.size(0), q.size(2), q.size(1)},
                       q.options().dtype(kernels::accumulate_dtype(q.scalar_type())));
  for (const Rows::Span& span : rule.rows.spans) {
    at::Tensor sums;
    part_of(out, span).copy_(
        forward(part_of(q, span), part_of(k, span), part_of(v, span), rule.scale, &sums));
    log_sums_of(*log_sum, span).copy_(sums);
  }
  return out;
}

AttentionGradient backward_by_span(Backward backward, const at::Tensor& dout,
                                   const AttentionTape& tape, const AttentionRule& rule,
                                   const at::Tensor& dv_out) {
  if (rule.rows.are_whole()) {
    return backward(dout, tape, rule.scale, dv_out);
  }
  AttentionGradient all{at::empty(tape.q_BTHd.sizes(), tape.q_BTHd.options()),
                        at::empty(tape.k_BTHd.sizes(), tape.k_BTHd.options())};
  for (const Rows::Span& span : rule.rows.spans) {
    const AttentionTape part{part_of(tape.q_BTHd, span), part_of(tape.k_BTHd, span),
                             part_of(tape.v_BTHd, span), part_of(tape.out_BTHd, span),
                             log_sums_of(tape.log_sum_BHT, span)};
    const AttentionGradient g =
        backward(part_of(dout, span), part, rule.scale, part_of(dv_out, span));
    part_of(all.dq_BTHd, span).copy_(g.dq_BTHd);
    part_of(all.dk_BTHd, span).copy_(g.dk_BTHd);
  }
  return all;
}

}  // namespace

AttentionPath best_attention_path(const at::Tensor& q) {
  if (!q.is_cpu()) {
    return AttentionPath::Reference;
  }
  return kernels::has_blocked_attention(q.scalar_type()) ? AttentionPath::Blocked
                                                         : AttentionPath::Fused;
}

at::Tensor attention_forward(AttentionPath path, const at::Tensor& q_BTHd, const at::Tensor& k_BTHd,
                             const at::Tensor& v_BTHd, const AttentionRule& rule,
                             AttentionTape* tape) {
  at::Tensor log_sum;
  at::Tensor out;
  switch (path) {
    case AttentionPath::Blocked:
      out = kernels::blocked_attention(q_BTHd, k_BTHd, v_BTHd, rule, &log_sum);
      break;
    case AttentionPath::Fused:
      out = forward_by_span(fused_forward, q_BTHd, k_BTHd, v_BTHd, rule, &log_sum);
      break;
    case AttentionPath::Reference:
      out = forward_by_span(reference_forward, q_BTHd, k_BTHd, v_BTHd, rule, &log_sum);
      break;
  }
  if (tape != nullptr) {
    *tape = {q_BTHd, k_BTHd, v_BTHd, out, log_sum};
  }
  return out;
}

AttentionGradient attention_backward(AttentionPath path, const at::Tensor& dout_BTHd,
                                     AttentionTape& tape, const AttentionRule& rule,
                                     const at::Tensor& dv_BTHd) {
  const AttentionTape saved = std::exchange(tape, {});
  switch (path) {
    case AttentionPath::Blocked:
      return kernels::blocked_attention_backward(dout_BTHd, saved, rule, dv_BTHd);
    case AttentionPath::Fused:
      return backward_by_span(fused_backward, dout_BTHd, saved, rule, dv_BTHd);
    case AttentionPath::Reference:
      break;
  }
  return backward_by_span(reference_backward, dout_BTHd, saved, rule, dv_BTHd);
}

}  // namespace ciuic::core
