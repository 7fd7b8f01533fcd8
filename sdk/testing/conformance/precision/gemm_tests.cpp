// SPDX-License-Identifier: MIT
//
// hooks and gemm: the passes that a policy says it takes, it computes, for every shape of a layer;
// the others it refuses.
#include <string>
#include <thread>

#include "gemm_bench.hpp"
#include "policy_tests.hpp"

namespace ciuic::testing {
namespace {

constexpr Extents kLayer{48, 160, 96};
constexpr uint32_t kPasses =
    1U << CIUIC_GEMM_FORWARD | 1U << CIUIC_GEMM_GRAD_INPUT | 1U << CIUIC_GEMM_GRAD_WEIGHT;

}  // namespace

void hooks_are_pure(const TestContext& context) {
  const PolicyBench policy(context);
  const PolicyBench other(context, {1, 2, {}});
  for (const Module& module : kModules) {
    const uint32_t hooks = policy.hooks(module.id);
    require((hooks & ~kPasses) == 0, "hooks of " + std::string(module.name) + " is " +
                                         std::to_string(hooks) +
                                         "; expected bits 1 << CIUIC_GEMM_FORWARD, _GRAD_INPUT, "
                                         "_GRAD_WEIGHT only");
    require(hooks == 0 || CIUIC_CAN(&policy.vt(), gemm),
            "hooks of " + std::string(module.name) + " takes passes, but there is no gemm");
    uint32_t in_thread = 0;
    std::thread([&] { in_thread = policy.hooks(module.id); }).join();
    require(
        policy.hooks(module.id) == hooks && in_thread == hooks && other.hooks(module.id) == hooks,
        "hooks of " + std::string(module.name) +
            " changes: asked again, in another thread, or on another rank");
  }
  for (const int32_t device : {1, 2, 3, 99}) {  // CPU, CUDA, pinned, nobody's
    (void)policy.vt().hooks(policy.instance().self(), kModules[0].id, {device, 0});
    (void)policy.vt().hooks(policy.instance().self(), 4'000'000'000U, {device, 0});
  }
}

void passes_without_hook_are_refused(const TestContext& context) {
  const PolicyBench policy(context);
  bool any = false;
  for (const Module& module : kModules) {
    for (uint32_t pass = CIUIC_GEMM_FORWARD; pass <= CIUIC_GEMM_GRAD_WEIGHT; ++pass) {
      if ((policy.hooks(module.id) & (1U << pass)) != 0) {
        continue;
      }
      any = true;
      const PassSetup setup{module.id, pass, {4, 8, 16}};
      const PassBench bench(policy, setup, context.seed);
      const int32_t code = policy.gemm(bench.request());
      require(code == CIUIC_UNIMPLEMENTED,
              to_text(setup) + ": hooks does not take this pass, and gemm returns " +
                  code_name(code) + "; expected UNIMPLEMENTED");
    }
  }
  if (!any) {
    throw NotOffered("hooks takes every pass of every module");
  }
}

void gemm_is_close(const TestContext& context) {
  const PolicyBench policy(context);
  constexpr Extents kEven[] = {kLayer, {128, 256, 128}, {16, 16, 16}};
  constexpr Extents kOdd[] = {{1, 1, 1}, {3, 129, 5}, {33, 70, 131}};
  for (const Extents& extents : kEven) {
    for (const PassSetup& setup : hooked_passes(policy, extents)) {
      PassBench bench(policy, setup, context.seed);
      run_or_refuse(policy, bench.request(), false, to_text(setup));
      bench.expect_close(bench.request(), "");
    }
  }
  for (const Extents& extents : kOdd) {  // kernels may want multiples of 16
    for (const PassSetup& setup : hooked_passes(policy, extents)) {
      PassBench bench(policy, setup, context.seed);
      if (run_or_refuse(policy, bench.request(), true, to_text(setup))) {
        bench.expect_close(bench.request(), "");
      }
    }
  }
}

/// a and b cast beforehand, as where one cast serves several products.
void gemm_takes_cast_operands(const TestContext& context) {
  const PolicyBench policy(context);
  bool any = false;
  for (const PassSetup& setup : hooked_passes(policy, kLayer)) {
    PassBench bench(policy, setup, context.seed);
    const auto as_input = [](const Operand& operand) {
      return CastInput(operand.c()->t.dtype, operand.c()->t.shape[0], operand.c()->t.shape[1],
                       operand.values());
    };
    const CastInput a_in = as_input(bench.a());
    const CastInput b_in = as_input(bench.b());
    if (!policy.format(cast_of(bench.a_cast(), a_in.c())) ||
        !policy.format(cast_of(bench.b_cast(), b_in.c()))) {
      continue;
    }
    const CastResult a(policy, bench.a_cast(), a_in);
    const CastResult b(policy, bench.b_cast(), b_in);
    if (!a.has_shape_of_in() || !b.has_shape_of_in() || a.scale() == nullptr ||
        b.scale() == nullptr) {
      continue;  // only a scale tells a cast operand from one that is not
    }
    any = true;
    ciuic_gemm request = bench.request();
    request.a = a.out();
    request.b = b.out();
    request.a_scale = a.scale();
    request.b_scale = b.scale();
    run_or_refuse(policy, request, false, to_text(setup) + " with operands cast beforehand");
    bench.expect_close(request, " with operands cast beforehand");
  }
  if (!any) {
    throw NotOffered("no hooked pass whose operands have a format with scales, in their own shape");
  }
}

void gemm_adds_beta_times_out(const TestContext& context) {
  const PolicyBench policy(context);
  constexpr double kFactors[][2] = {{1, 1}, {0.5, -2}, {2, 0.25}, {-1, 0}, {0, 1}};
  for (const PassSetup& setup : hooked_passes(policy, kLayer)) {
    for (const auto& [alpha, beta] : kFactors) {
      PassBench bench(policy, setup, context.seed);
      bench.prepare_out(beta != 0);  // with beta 0 out is NaN: it may not be read
      const ciuic_gemm request = bench.request(alpha, beta);
      run_or_refuse(policy, request, false, to_text(setup));
      bench.expect_close(request, "");
    }
  }
}

void gemm_honours_strides(const TestContext& context) {
  const PolicyBench policy(context);
  bool any = false;
  for (PassSetup setup : hooked_passes(policy, kLayer)) {
    setup.gap = 5;
    PassBench bench(policy, setup, context.seed);
    const std::string what = to_text(setup) + " with 5 elements between rows";
    const int32_t code = policy.gemm(bench.request());
    if (code == CIUIC_UNIMPLEMENTED || code == CIUIC_INVALID) {
      continue;
    }
    any = true;
    require(code == CIUIC_OK, what + ": " + code_name(code) + ": " + policy.gemm_message());
    bench.expect_close(bench.request(), " with 5 elements between rows");
    require(bench.out().gaps_untouched(), what + ": memory between the rows of out was written");
  }
  if (!any) {
    throw NotOffered("gemm refuses operands that are not contiguous");
  }
}

}  // namespace ciuic::testing
