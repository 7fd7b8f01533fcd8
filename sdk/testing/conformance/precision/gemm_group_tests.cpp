// SPDX-License-Identifier: MIT
//
// Products of experts (rows sorted by expert, some experts without rows), and casts of weights kept
// from call to call by b_version.
#include <string>

#include "gemm_bench.hpp"
#include "policy_tests.hpp"

namespace ciuic::testing {
namespace {

bool is_experts(uint32_t id) {
  for (const Module& module : kModules) {
    if (module.id == id) {
      return std::string_view(module.name).find(".experts.") != std::string_view::npos;
    }
  }
  return false;
}

}  // namespace

void gemm_takes_groups(const TestContext& context) {
  const PolicyBench policy(context);
  bool any = false;
  const std::vector<std::vector<int64_t>> all_ends = {
      {16, 32, 48}, {0, 16, 16, 47, 48, 48}, {48}, {0, 0, 48}};
  for (PassSetup setup : hooked_passes(policy, {48, 64, 32})) {
    if (!is_experts(setup.module)) {
      continue;
    }
    for (const std::vector<int64_t>& ends : all_ends) {
      setup.group_ends = ends;
      PassBench bench(policy, setup, context.seed);
      // Gradients of experts are added to; an expert without rows keeps its own.
      const double beta = setup.pass == CIUIC_GEMM_GRAD_WEIGHT ? 1 : 0;
      bench.prepare_out(beta != 0);
      if (!run_or_refuse(policy, bench.request(1, beta), true, to_text(setup))) {
        continue;
      }
      any = true;
      bench.expect_close(bench.request(1, beta), "");
    }
  }
  if (!any) {
    throw NotOffered("gemm takes no groups of experts");
  }
}

void gemm_keeps_casts_by_version(const TestContext& context) {
  const PolicyBench policy(context);
  const std::vector<PassSetup> passes = hooked_passes(policy, {16, 64, 32});
  const auto run = [&](PassBench& bench, const PassSetup& setup, uint64_t version,
                       const std::string& what) {
    bench.prepare_out(false);
    ciuic_gemm request = bench.request();
    request.b_version = version;
    run_or_refuse(policy, request, false, to_text(setup) + what);
    bench.expect_close(request, what);
    return bench.out_values();
  };
  for (const PassSetup& setup : passes) {
    PassBench bench(policy, setup, context.seed);
    const std::vector<double> first = run(bench, setup, 7, ", b_version 7");
    require(run(bench, setup, 7, ", b_version 7 again") == first,
            to_text(setup) + ": b_version 7 again, the same b, gives other numbers");
    bench.set_b(context.seed + 50);
    (void)run(bench, setup, 8, ", new b with b_version 8 after 7");
    bench.set_b(context.seed + 51);
    (void)run(bench, setup, 0, ", new b with b_version 0 (do not keep)");
    bench.set_b(context.seed + 52);
    (void)run(bench, setup, 0, ", new b with b_version 0 again");
    bench.set_b(context.seed + 53);
    (void)run(bench, setup, 9, ", new b with b_version 9");
  }
  // The same version of every module and pass: each has a b of its own.
  for (size_t i = 0; i < passes.size(); ++i) {
    PassBench bench(policy, passes[i], context.seed + 100 + i);
    (void)run(bench, passes[i], 11, ", b_version 11 in every module and pass");
  }
}

}  // namespace ciuic::testing
