// SPDX-License-Identifier: MIT
//
// A work around another one, for decorators that must see its end before anybody hears of it. The
// inner work does everything; Derived gives
//
//   void ended(const ciuic_status* status);    // once; the status is borrowed
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include <ciuic/abi/work.h>

#include "core/plugin/trampoline/work_table.h"

namespace ciuic::core {

template <typename Derived>
class ForwardedWork : public ciuic_work {
 public:
  ForwardedWork(const ForwardedWork&) = delete;
  ForwardedWork& operator=(const ForwardedWork&) = delete;

 protected:
  /// Takes over the reference to `inner`.
  explicit ForwardedWork(ciuic_work* inner)
      : ciuic_work{WorkTable<ForwardedWork>::around(*inner->ops)}, inner_(inner) {}
  ~ForwardedWork() { inner_->ops->release(inner_); }

 private:
  friend class WorkTable<ForwardedWork>;

  static Derived& of(ciuic_work* w) { return static_cast<Derived&>(*w); }
  static ciuic_work* inner(ciuic_work* w) { return static_cast<ForwardedWork&>(of(w)).inner_; }
  void end_once(const ciuic_status* status) {
    std::call_once(once_, [&] { static_cast<Derived*>(this)->ended(status); });
  }

  static ciuic_status* test(ciuic_work* w, int32_t* done) {
    ciuic_status* status = inner(w)->ops->test(inner(w), done);
    if (*done != 0) {
      of(w).end_once(status);
    }
    return status;
  }
  static ciuic_status* wait(ciuic_work* w, int64_t timeout_ns) {
    ciuic_status* status = inner(w)->ops->wait(inner(w), timeout_ns);
    if (status == nullptr) {
      of(w).end_once(nullptr);
    }
    return status;  // a failure may be this wait's own deadline: whoever asks again ends it
  }
  static ciuic_status* stream_wait(ciuic_work* w, const ciuic_stream* stream) {
    return inner(w)->ops->stream_wait(inner(w), stream);
  }

  struct Listener {
    Derived* work;
    void (*callback)(void*, const ciuic_status*);
    void* context;
  };
  static ciuic_status* on_done(ciuic_work* w, void (*callback)(void*, const ciuic_status*),
                               void* context) {
    retain(w);  // until it has called back
    auto* listener = new Listener{&of(w), callback, context};
    ciuic_status* status = inner(w)->ops->on_done(inner(w), &called_back, listener);
    if (status != nullptr) {  // it will not call back
      delete listener;
      release(w);
    }
    return status;
  }
  static void called_back(void* context, const ciuic_status* status) {
    const std::unique_ptr<Listener> listener(static_cast<Listener*>(context));
    static_cast<ForwardedWork*>(listener->work)->end_once(status);
    listener->callback(listener->context, status);
    release(listener->work);
  }

  static void retain(ciuic_work* w) {
    static_cast<ForwardedWork&>(of(w)).references_.fetch_add(1, std::memory_order_relaxed);
  }
  static void release(ciuic_work* w) {
    auto& me = static_cast<ForwardedWork&>(of(w));
    if (me.references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete &of(w);
    }
  }
  static ciuic_status* votes(ciuic_work* w, uint32_t* bits) {
    return inner(w)->ops->votes(inner(w), bits);
  }
  static ciuic_status* times(ciuic_work* w, uint64_t* begin_ns, uint64_t* end_ns) {
    return inner(w)->ops->times(inner(w), begin_ns, end_ns);
  }

  ciuic_work* inner_;
  std::once_flag once_;
  std::atomic<int> references_{1};
};

}  // namespace ciuic::core
