// SPDX-License-Identifier: MIT
#include "core/train/tensor_service.h"

#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/sum.h>
#include <c10/core/InferenceMode.h>

#include "core/train/host_statistics.h"
#include "core/train/tensor_bridge.h"

namespace ciuic::core {
namespace {

void stats(const at::Tensor& in, at::Tensor out) {
  if (in.is_cpu() && in.scalar_type() == at::kFloat && in.is_contiguous()) {
    add_statistics(in.const_data_ptr<float>(), in.numel(), out.mutable_data_ptr<double>());
    return;
  }
  const at::Tensor wide = in.to(at::kDouble);
  out[0].add_(wide.square().sum());
  out[1].add_(at::isfinite(wide).logical_not().sum().to(at::kDouble));
}

void gemm(const ciuic_gemm& g) {
  if (g.pass != 0 || g.group_ends != nullptr || g.a_scale != nullptr || g.b_scale != nullptr) {
    throw Error(CIUIC_UNIMPLEMENTED,
                "ciuic.tensor: only plain products (pass 0, no groups, no scales)");
  }
  at::Tensor out = to_torch(*g.out);
  const at::Tensor a = to_torch(*g.a);
  const at::Tensor b = to_torch(*g.b);
  at::addmm_out(out, out, (g.flags & CIUIC_GEMM_TRANS_A) != 0 ? a.t() : a,
                (g.flags & CIUIC_GEMM_TRANS_B) != 0 ? b.t() : b, g.beta, g.alpha);
}

template <typename Body>
ciuic_status* run(void* ctx, Body&& body) {
  return guard(*static_cast<const Host*>(ctx), [&] {
    const c10::InferenceMode no_autograd;
    body();
  });
}

}  // namespace

TensorService::TensorService(const ciuic_host* host) : host_(host), table_(make_table(this)) {}

ciuic_tensor_service TensorService::make_table(TensorService* self) {
  ciuic_tensor_service s{};
  s.struct_size = sizeof(s);
  s.ctx = &self->host_;
  s.fill = [](void* ctx, const ciuic_tensor* out, double value, const ciuic_stream*) {
    return run(ctx, [&] { to_torch(*out).fill_(value); });
  };
  s.copy = [](void* ctx, const ciuic_tensor* in, const ciuic_tensor* out, const ciuic_stream*) {
    return run(ctx, [&] { to_torch(*out).copy_(to_torch(*in)); });
  };
  s.add = [](void* ctx, double alpha, const ciuic_tensor* in, double beta, const ciuic_tensor* out,
             const ciuic_stream*) {
    return run(ctx, [&] {
      at::Tensor o = to_torch(*out);
      if (beta != 1.0) {
        o.mul_(beta);
      }
      o.add_(to_torch(*in), alpha);
    });
  };
  s.stats = [](void* ctx, const ciuic_tensor* in, const ciuic_tensor* out, const ciuic_stream*) {
    return run(ctx, [&] { stats(to_torch(*in), to_torch(*out)); });
  };
  s.gemm = [](void* ctx, const ciuic_gemm* g, const ciuic_stream*) {
    return run(ctx, [&] { gemm(*g); });
  };
  return s;
}

}  // namespace ciuic::core
