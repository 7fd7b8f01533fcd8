// SPDX-License-Identifier: MIT
//
// Which dtype where: answered for every role of every module, also for modules that nobody thought
// of, and always with the same answer.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "policy_tests.hpp"

namespace ciuic::testing {
namespace {

std::vector<std::string> module_names() {
  std::vector<std::string> out;
  for (const Module& module : kModules) {
    out.emplace_back(module.name);
  }
  for (const char* other : {"model", "model.layers.61.eh_proj", "somebodys.own.module", "x",
                            "model.layers.1000000.mlp.experts.255.up_proj"}) {
    out.emplace_back(other);
  }
  return out;
}

template <typename Check>
void for_roles(Check&& check) {
  for (const std::string& module : module_names()) {
    for (uint32_t role = kFirstRole; role <= kLastRole; ++role) {
      check(module, role);
    }
  }
}

bool is_float(ciuic_dtype d) { return same(d, kF64) || same(d, kF32) || FloatFormat::knows(d); }

std::string call(const std::string& module, uint32_t role) {
  return "dtype_for(\"" + module + "\", " + role_name(role) + ")";
}

}  // namespace

void dtypes_are_known(const TestContext& context) {
  const PolicyBench policy(context);
  for_roles([&](const std::string& module, uint32_t role) {
    ciuic_dtype dtype{};
    try {
      dtype = policy.dtype_for(module, role);
    } catch (const Error& error) {
      throw CheckFailed(call(module, role) + " failed: " + error.what() +
                        "; expected a dtype for every role of every module, known or not");
    }
    require(is_float(dtype), call(module, role) + " is " + dtype_name(dtype) + ", lanes " +
                                 std::to_string(dtype.lanes) +
                                 "; expected f64, f32, f16, bf16, f8_e4m3fn or f8_e5m2 of 1 lane");
  });
}

void dtypes_are_pure(const TestContext& context) {
  PolicyBench policy(context, {}, false);
  std::vector<ciuic_dtype> before;
  for_roles([&](const std::string& module, uint32_t role) {
    before.push_back(policy.dtype_for(module, role));
  });
  const auto expect_same = [&](const PolicyBench& bench, const std::string& when) {
    size_t i = 0;
    for_roles([&](const std::string& module, uint32_t role) {
      const ciuic_dtype now = bench.dtype_for(module, role);
      require(same(now, before[i]), call(module, role) + " was " + dtype_name(before[i]) +
                                        " and is " + dtype_name(now) + " " + when);
      ++i;
    });
  };
  expect_same(policy, "when asked again");
  policy.attach();
  expect_same(policy, "after attach");
  for (int i = 0; i < 50; ++i) {
    if (policy.update(i % 5 != 0)) {
      break;
    }
  }
  expect_same(policy, "after updates");
  expect_same(PolicyBench(context, {2, 4, {}}), "on another rank");

  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      try {
        expect_same(policy, "in another thread");
      } catch (const std::exception&) {
        ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  require(wrong == 0, "dtype_for [Q], called by four threads at once, gave other answers");
}

void masters_are_wide(const TestContext& context) {
  const PolicyBench policy(context);
  for (const std::string& module : module_names()) {
    const ciuic_dtype value = policy.dtype_for(module, CIUIC_ROLE_VALUE);
    const ciuic_dtype master = policy.dtype_for(module, CIUIC_ROLE_MASTER);
    require(master.bits >= value.bits,
            call(module, CIUIC_ROLE_MASTER) + " is " + dtype_name(master) + ", narrower than " +
                call(module, CIUIC_ROLE_VALUE) + ", which is " + dtype_name(value) +
                ": what the optimizer updates must hold what the layers read");
  }
}

}  // namespace ciuic::testing
