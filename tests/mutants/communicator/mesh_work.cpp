// SPDX-License-Identifier: MIT
#include "mesh_work.h"

namespace ciuic::mutants {
namespace {

constexpr std::chrono::milliseconds kStep{5};

struct MeshWork : ciuic_work {
  MeshWork(Host h, std::shared_ptr<Behaviour> b, std::shared_ptr<Engine> e,
           std::shared_ptr<Batch> g)
      : ciuic_work{table()},
        host(h),
        behaviour(std::move(b)),
        engine(std::move(e)),
        batch(std::move(g)),
        inner(batch->done.work()) {}

  Host host;
  std::shared_ptr<Behaviour> behaviour;
  std::shared_ptr<Engine> engine;
  std::shared_ptr<Batch> batch;
  Work inner;
  std::atomic<int64_t> references{1};

  static MeshWork* self(ciuic_work* w) { return static_cast<MeshWork*>(w); }

  [[nodiscard]] ciuic_status* test_inner(int32_t* done) const {
    return inner.get()->ops->test(inner.get(), done);
  }
  [[nodiscard]] bool has_ended() const {
    int32_t done = 0;
    if (ciuic_status* status = test_inner(&done)) {
      host.table()->status_free(host.table()->ctx, status);
    }
    return done != 0;
  }
  /// Makes progress until the end, or the time is up; < 0: no limit.
  void drive(int64_t timeout_ns) const {
    const auto deadline = Clock::now() + std::chrono::nanoseconds(timeout_ns);
    while (!behaviour->has_thread() && !has_ended() &&
           (timeout_ns < 0 || Clock::now() < deadline)) {
      engine->pump(kStep);
    }
  }

  static ciuic_status* test(ciuic_work* w, int32_t* done) {
    if (!self(w)->behaviour->has_thread()) {
      self(w)->engine->pump(std::chrono::milliseconds(0));
    }
    return self(w)->test_inner(done);
  }
  static ciuic_status* wait(ciuic_work* w, int64_t timeout_ns) {
    self(w)->drive(timeout_ns);
    ciuic_work* inner = self(w)->inner.get();
    return inner->ops->wait(inner, self(w)->behaviour->has_thread() ? timeout_ns : 0);
  }
  static ciuic_status* stream_wait(ciuic_work* w, const ciuic_stream*) { return wait(w, -1); }
  static ciuic_status* on_done(ciuic_work* w, Callback callback, void* context) {
    MeshWork* s = self(w);
    ciuic_status* status = s->behaviour->on_done(s->inner.get(), callback, context);
    s->drive(-1);  // nobody else may come to do it
    return status;
  }
  static void retain(ciuic_work* w) { ++self(w)->references; }
  static void release(ciuic_work* w) {
    if (--self(w)->references == 0) {
      delete self(w);
    }
  }
  static ciuic_status* votes(ciuic_work* w, uint32_t* bits) {
    *bits = self(w)->batch->votes;
    return nullptr;
  }

  static const ciuic_work_ops* table() {
    static const ciuic_work_ops ops{sizeof(ciuic_work_ops),
                                    0,
                                    &test,
                                    &wait,
                                    &stream_wait,
                                    &on_done,
                                    &retain,
                                    &release,
                                    &votes,
                                    nullptr};
    return &ops;
  }
};

}  // namespace

Work make_mesh_work(Host host, const std::shared_ptr<Behaviour>& behaviour,
                    const std::shared_ptr<Engine>& engine, const std::shared_ptr<Batch>& batch) {
  return Work(new MeshWork(host, behaviour, engine, batch));
}

}  // namespace ciuic::mutants
