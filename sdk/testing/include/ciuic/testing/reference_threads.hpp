// SPDX-License-Identifier: MIT
//
// "ciuic.threads": parallel splits over real threads made for the call (so that a race is a race),
// run runs inline, start is a thread joined with this object.
#pragma once

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/testing/test_host.hpp>
#include <ciuic/work.hpp>

namespace ciuic::testing {

class ReferenceThreads {
 public:
  explicit ReferenceThreads(Host host, uint32_t count = 1) : host_(host), count_(count) {
    table_.struct_size = sizeof(table_);
    table_.ctx = this;
    table_.count = [](void* ctx) { return from(ctx).count_; };
    table_.parallel = [](void* ctx, int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t),
                         void* context) {
      return guard(from(ctx).host_, [&] { from(ctx).parallel(n, grain, body, context); });
    };
    table_.run = [](void*, ciuic_status* (*body)(void*), void* context, ciuic_work** work) {
      *work = nullptr;
      return body(context);
    };
    table_.start = [](void* ctx, ciuic_str, ciuic_status* (*body)(void*), void* context,
                      ciuic_work** work) {
      return guard(from(ctx).host_, [&] { *work = from(ctx).start(body, context); });
    };
    table_.all = [](void* ctx, ciuic_array works, ciuic_work** work) {
      return guard(from(ctx).host_, [&] { *work = from(ctx).all(works); });
    };
    table_.promise = [](void* ctx, ciuic_work** work) {
      return guard(from(ctx).host_, [&] { *work = Completion::make_promise(from(ctx).host_); });
    };
    table_.fulfil = [](void* ctx, ciuic_work* work, ciuic_status* status) {
      Completion::fulfil(work, from(ctx).taken(status));
    };
  }
  ReferenceThreads(const ReferenceThreads&) = delete;
  ReferenceThreads& operator=(const ReferenceThreads&) = delete;
  ~ReferenceThreads() {
    for (std::thread& thread : started_) {
      thread.join();
    }
  }

  [[nodiscard]] const ciuic_thread_service* table() const noexcept { return &table_; }

 private:
  static ReferenceThreads& from(void* ctx) { return *static_cast<ReferenceThreads*>(ctx); }

  void parallel(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t),
                void* context) const {
    const int64_t pieces =
        std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, std::max(count_, 1U));
    std::vector<std::thread> threads;
    for (int64_t i = 1; i < pieces; ++i) {
      threads.emplace_back(body, context, count * i / pieces, count * (i + 1) / pieces);
    }
    if (count > 0) {
      body(context, 0, count / pieces);
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  ciuic_work* start(ciuic_status* (*body)(void*), void* context) {
    const Completion done(host_);
    const std::lock_guard<std::mutex> lock(mutex_);
    started_.emplace_back([this, body, context, done] {
      const std::optional<Error> error = taken(body(context));
      error ? done.fail(*error) : done.finish();
    });
    return done.work().release();
  }

  struct Join {
    std::mutex mutex;
    size_t remaining;
    std::optional<Error> first;
    Host host;
    Completion done;
  };
  ciuic_work* all(ArrayView<ciuic_work*> works) const {
    const Completion done(host_);
    if (works.empty()) {
      done.finish();
      return done.work().release();
    }
    auto* join = new Join{{}, works.size(), {}, host_, done};
    for (ciuic_work* work : works) {
      if (work == nullptr) {
        joined(join, nullptr);
      } else {
        host_.check(work->ops->on_done(work, &joined, join));
      }
    }
    return done.work().release();
  }
  static void joined(void* context, const ciuic_status* status) {
    auto* join = static_cast<Join*>(context);
    {
      const std::lock_guard<std::mutex> lock(join->mutex);
      if (status != nullptr && !join->first) {
        join->first = join->host.read(status);
      }
      if (--join->remaining > 0) {
        return;
      }
    }
    join->first ? join->done.fail(*join->first) : join->done.finish();
    delete join;
  }

  std::optional<Error> taken(ciuic_status* status) const {
    return status == nullptr ? std::nullopt : std::optional<Error>(host_.take(status));
  }

  Host host_;
  uint32_t count_;
  ciuic_thread_service table_{};
  std::mutex mutex_;
  std::vector<std::thread> started_;
};

}  // namespace ciuic::testing
