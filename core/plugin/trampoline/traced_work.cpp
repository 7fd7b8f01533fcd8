// SPDX-License-Identifier: MIT
#include "core/plugin/trampoline/traced_work.h"

#include <atomic>

#include "core/plugin/trampoline/work_table.h"

namespace ciuic::core {
namespace {

struct TracedWork : ciuic_work {
  TracedWork(ciuic_work* w, std::shared_ptr<CallGuard> g, const char* f, uint64_t n)
      : ciuic_work{WorkTable<TracedWork>::around(*w->ops)},
        inner(w),
        guard(std::move(g)),
        function(f),
        sequence(n) {}

  static TracedWork& of(ciuic_work* w) { return static_cast<TracedWork&>(*w); }
  template <typename Body>
  static auto call(ciuic_work* w, Body&& body) {
    TracedWork& me = of(w);
    return me.guard->call(me.function, me.sequence, true,
                          [&] { return body(me.inner, *me.inner->ops); });
  }

  static ciuic_status* test(ciuic_work* w, int32_t* done) {
    return call(w, [&](ciuic_work* i, const ciuic_work_ops& o) { return o.test(i, done); });
  }
  static ciuic_status* wait(ciuic_work* w, int64_t ns) {
    return call(w, [&](ciuic_work* i, const ciuic_work_ops& o) { return o.wait(i, ns); });
  }
  static ciuic_status* stream_wait(ciuic_work* w, const ciuic_stream* s) {
    return call(w, [&](ciuic_work* i, const ciuic_work_ops& o) { return o.stream_wait(i, s); });
  }
  static ciuic_status* on_done(ciuic_work* w, void (*callback)(void*, const ciuic_status*),
                               void* context) {
    return call(
        w, [&](ciuic_work* i, const ciuic_work_ops& o) { return o.on_done(i, callback, context); });
  }
  static void retain(ciuic_work* w) { of(w).references.fetch_add(1, std::memory_order_relaxed); }
  static void release(ciuic_work* w) {
    if (of(w).references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const std::unique_ptr<TracedWork> last(&of(w));
      call(w, [](ciuic_work* i, const ciuic_work_ops& o) { o.release(i); });
    }
  }
  static ciuic_status* votes(ciuic_work* w, uint32_t* bits) {
    return call(w, [&](ciuic_work* i, const ciuic_work_ops& o) { return o.votes(i, bits); });
  }
  static ciuic_status* times(ciuic_work* w, uint64_t* begin_ns, uint64_t* end_ns) {
    return call(
        w, [&](ciuic_work* i, const ciuic_work_ops& o) { return o.times(i, begin_ns, end_ns); });
  }

  ciuic_work* inner;
  std::shared_ptr<CallGuard> guard;
  const char* function;
  uint64_t sequence;
  std::atomic<int> references{1};
};

}  // namespace

ciuic_work* trace_work(ciuic_work* work, std::shared_ptr<CallGuard> guard, const char* function,
                       uint64_t sequence) {
  return new TracedWork(work, std::move(guard), function, sequence);
}

}  // namespace ciuic::core
