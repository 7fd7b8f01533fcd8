// SPDX-License-Identifier: MIT
#include "core/plugin/thread_service.h"

#include <atomic>
#include <optional>
#include <pthread.h>
#include <signal.h>

#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

namespace ciuic::core {
namespace {

void end(const Host& host, const Completion& completion, ciuic_status* status) {
  if (status == nullptr) {
    completion.finish();
  } else {
    completion.fail(host.take(status));
  }
}

void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

/// Shared by the callbacks of `all`.
struct Joined {
  Joined(Host h, size_t n) : host(h), completion(h), left(n) {}
  Host host;
  Completion completion;
  std::atomic<size_t> left;
  std::mutex mutex;
  std::optional<Error> first;
};

struct Waiter {
  std::shared_ptr<Joined> joined;
  Work keep;  // the work stays until it has called back
};

void on_one_done(void* context, const ciuic_status* status) {
  const std::unique_ptr<Waiter> waiter(static_cast<Waiter*>(context));
  Joined& joined = *waiter->joined;
  if (status != nullptr) {
    const std::lock_guard lock(joined.mutex);
    if (!joined.first) {
      joined.first = joined.host.read(status);
    }
  }
  if (joined.left.fetch_sub(1) == 1) {
    if (joined.first) {
      joined.completion.fail(*joined.first);
    } else {
      joined.completion.finish();
    }
  }
}

}  // namespace

ThreadService::ThreadService(const ciuic_host* host, unsigned threads, Parallel parallel)
    : host_(host), threads_(threads), parallel_(std::move(parallel)), table_(make_table(this)) {}

ThreadService::~ThreadService() {
  for (std::thread& t : started_) {
    t.join();
  }
}

ciuic_work* ThreadService::launch(std::string name, Body body, void* context) {
  const Completion completion(host_);
  Work work = completion.work();
  const std::lock_guard lock(mutex_);
  started_.emplace_back([host = host_, completion, name = std::move(name), body, context] {
    block_all_signals();
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    end(host, completion, body(context));
  });
  return work.release();
}

ciuic_thread_service ThreadService::make_table(ThreadService* self) {
  ciuic_thread_service s{};
  s.struct_size = sizeof(s);
  s.ctx = self;
  s.count = [](void* ctx) {
    return static_cast<uint32_t>(static_cast<ThreadService*>(ctx)->threads_);
  };
  s.parallel = [](void* ctx, int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t),
                  void* context) {
    auto* me = static_cast<ThreadService*>(ctx);
    return guard(me->host_, [&] {
      me->parallel_(count, grain, [&](int64_t begin, int64_t end) { body(context, begin, end); });
    });
  };
  s.run = [](void* ctx, Body body, void* context, ciuic_work** work) {
    auto* me = static_cast<ThreadService*>(ctx);
    return guard(me->host_, [&] { *work = me->launch("ciuic-pool", body, context); });
  };
  s.start = [](void* ctx, ciuic_str name, Body body, void* context, ciuic_work** work) {
    auto* me = static_cast<ThreadService*>(ctx);
    return guard(me->host_, [&] { *work = me->launch(std::string(to_view(name)), body, context); });
  };
  s.all = [](void* ctx, ciuic_array works, ciuic_work** out) {
    auto* me = static_cast<ThreadService*>(ctx);
    *out = nullptr;
    return guard(me->host_, [&] {
      std::vector<ciuic_work*> pending;
      for (ciuic_work* w : ArrayView<ciuic_work*>(works)) {
        if (w != nullptr) {
          pending.push_back(w);
        }
      }
      if (pending.empty()) {
        return;
      }
      const auto joined = std::make_shared<Joined>(me->host_, pending.size());
      *out = joined->completion.work().release();
      for (ciuic_work* w : pending) {
        w->ops->retain(w);
        me->host_.check(w->ops->on_done(w, &on_one_done, new Waiter{joined, Work(w)}));
      }
    });
  };
  s.promise = [](void* ctx, ciuic_work** work) {
    auto* me = static_cast<ThreadService*>(ctx);
    return guard(me->host_, [&] { *work = Completion::make_promise(me->host_); });
  };
  s.fulfil = [](void* ctx, ciuic_work* work, ciuic_status* status) {
    const Host& host = static_cast<ThreadService*>(ctx)->host_;
    std::optional<Error> error;
    if (status != nullptr) {
      error = host.take(status);
    }
    Completion::fulfil(work, std::move(error));
  };
  return s;
}

}  // namespace ciuic::core
