// SPDX-License-Identifier: MIT
//
// What a call across the boundary costs: the plugin's own function, and the same through the host's
// trampoline with its number and breadcrumb. Wanted: under 10 ns and under 50 ns. Not run by ctest:
//   ninja plugin_call_benchmark && tests/plugin_call_benchmark
#include <benchmark/benchmark.h>

#include "core/plugin/host_context.h"
#include "core/plugin/trampoline/trampoline.h"

namespace ciuic::core {
namespace {

struct Noop {
  Noop() {
    update.struct_size = sizeof(update);
    ciuic_create_args args{};
    args.struct_size = sizeof(args);
    args.host = context.table();
    ciuic_instance* instance = nullptr;
    descriptor.create(&args, &instance);
    layer = make_trampoline(descriptor, instance,
                            std::make_shared<CallGuard>(descriptor, context.table()));
  }

  Log log{Log::Options{0, 1, LogLevel::Off, "", false}};
  HostContext context{"noop", log};
  const ciuic_descriptor& descriptor = *ciuic_plugin_query(CIUIC_ABI_MAJOR, 0);
  std::unique_ptr<Layer> layer;
  ciuic_precision_update update{};
};

Noop& noop() {
  static Noop n;
  return n;
}

void bare_call(benchmark::State& state) {
  const auto* vt = static_cast<const ciuic_precision_vt*>(noop().descriptor.vt);
  for (auto _ : state) {
    benchmark::DoNotOptimize(vt);
    benchmark::DoNotOptimize(vt->update(nullptr, &noop().update));
  }
}
BENCHMARK(bare_call);

void host_call(benchmark::State& state) {
  const auto* vt = static_cast<const ciuic_precision_vt*>(noop().layer->table());
  ciuic_instance* self = noop().layer->handle();
  for (auto _ : state) {
    benchmark::DoNotOptimize(vt);
    benchmark::DoNotOptimize(vt->update(self, &noop().update));
  }
}
BENCHMARK(host_call);
BENCHMARK(host_call)->Threads(2)->Name("host_call, two threads on one instance");

}  // namespace
}  // namespace ciuic::core

BENCHMARK_MAIN();
