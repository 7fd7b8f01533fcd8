// SPDX-License-Identifier: MIT
#include "driven_work.h"

#include <atomic>
#include <utility>

#include "engine.h"

namespace ciuic::plugins::shm {
namespace {

constexpr int64_t kLongestNs = int64_t{1} << 60;  // 36 years: what is added to a clock must fit

struct DrivenWork : ciuic_work {
  DrivenWork(std::shared_ptr<Engine> e, std::shared_ptr<Batch> b)
      : ciuic_work{&table()},
        engine(std::move(e)),
        batch(std::move(b)),
        inner(batch->done.work()) {}

  static DrivenWork& self(ciuic_work* w) { return *static_cast<DrivenWork*>(w); }
  static const ciuic_work_ops& table();

  static ciuic_status* test(ciuic_work* w, int32_t* done) {
    ciuic_work* i = self(w).inner.get();
    return i->ops->test(i, done);
  }
  static ciuic_status* wait(ciuic_work* w, int64_t timeout_ns) {
    const bool has_limit = timeout_ns >= 0 && timeout_ns < kLongestNs;
    const auto limit =
        has_limit ? Clock::now() + std::chrono::nanoseconds(timeout_ns) : Clock::time_point::max();
    const bool has_ended = self(w).engine->drive(*self(w).batch, limit);
    ciuic_work* i = self(w).inner.get();
    return i->ops->wait(i, has_ended ? -1 : 0);
  }
  static ciuic_status* on_done(ciuic_work* w, void (*callback)(void*, const ciuic_status*),
                               void* context) {
    ciuic_work* i = self(w).inner.get();
    return i->ops->on_done(i, callback, context);
  }
  static void release(ciuic_work* w) {
    if (self(w).references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete &self(w);
    }
  }

  const std::shared_ptr<Engine> engine;
  const std::shared_ptr<Batch> batch;
  const Work inner;
  std::atomic<int64_t> references{1};
};

const ciuic_work_ops& DrivenWork::table() {
  static const ciuic_work_ops ops = [] {
    ciuic_work_ops o{};
    o.struct_size = sizeof(o);
    o.test = &test;
    o.wait = &wait;
    o.stream_wait = [](ciuic_work* w, const ciuic_stream*) { return wait(w, -1); };
    o.on_done = &on_done;
    o.retain = [](ciuic_work* w) { self(w).references.fetch_add(1, std::memory_order_relaxed); };
    o.release = &release;
    return o;
  }();
  return ops;
}

}  // namespace

Work make_driven_work(std::shared_ptr<Engine> engine, std::shared_ptr<Batch> batch) {
  return Work(new DrivenWork(std::move(engine), std::move(batch)));
}

}  // namespace ciuic::plugins::shm
