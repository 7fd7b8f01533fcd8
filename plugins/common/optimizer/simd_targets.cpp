// SPDX-License-Identifier: MIT
//
// Which vector units this machine has: the run-time part of Highway (its targets.cc), as much as
// HWY_DYNAMIC_DISPATCH calls. Debian has Highway as a shared library only, which a plugin may not
// need: it must load on hosts without it.
#include <hwy/highway.h>

namespace hwy {
namespace {

int64_t mock_targets = 0;  // of SetSupportedTargetsForTest; 0: none

#if HWY_ARCH_X86
// The compilers' builtins ask the operating system too. F16C is not asked for: no kernel here uses
// it, and no machine has AVX2 without.
bool has_sse4() {
  return __builtin_cpu_supports("sse4.1") != 0 && __builtin_cpu_supports("sse4.2") != 0 &&
         __builtin_cpu_supports("aes") != 0 && __builtin_cpu_supports("pclmul") != 0;
}
bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
}
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512bw") != 0;
}
#endif

/// Each set of instructions includes the ones before it.
int64_t detect() {
  int64_t targets = HWY_STATIC_TARGET | HWY_SCALAR;
#if HWY_ARCH_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("ssse3") == 0) {
    return targets;
  }
  targets |= HWY_SSSE3;
  if (!has_sse4()) {
    return targets;
  }
  targets |= HWY_SSE4;
  if (!has_avx2()) {
    return targets;
  }
  targets |= HWY_AVX2;
  if (has_avx512()) {
    targets |= HWY_AVX3;
  }
#endif
  return targets;
}

}  // namespace

int64_t SupportedTargets() { return mock_targets != 0 ? mock_targets : detect(); }

void SetSupportedTargetsForTest(int64_t targets) {
  mock_targets = targets;
  GetChosenTarget().DeInit();
}

ChosenTarget& GetChosenTarget() {
  static constinit ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
