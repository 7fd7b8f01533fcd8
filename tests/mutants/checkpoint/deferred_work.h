// SPDX-License-Identifier: MIT
//
// A work whose work is done by whoever first waits for it, tests it, or needs it done.
#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include <ciuic/work.hpp>

namespace ciuic::mutants::checkpoint {

class DeferredWork final : public ciuic_work {
 public:
  static Work make(const Host& host, std::function<void()> body) {
    return Work(new DeferredWork(host, std::move(body)));
  }

 private:
  DeferredWork(const Host& host, std::function<void()> body)
      : ciuic_work{&table()}, host_(host), body_(std::move(body)) {}

  static DeferredWork& self(ciuic_work* work) { return *static_cast<DeferredWork*>(work); }
  ciuic_status* run() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_done_) {
      is_done_ = true;
      try {
        body_();
      } catch (const Error& e) {
        error_.emplace(e);
      }
    }
    return error_ ? host_.status(*error_) : nullptr;
  }
  static const ciuic_work_ops& table() {
    static const ciuic_work_ops ops = [] {
      ciuic_work_ops o{};
      o.struct_size = sizeof(o);
      o.test = [](ciuic_work* work, int32_t* done) {
        *done = 1;
        return self(work).run();
      };
      o.wait = [](ciuic_work* work, int64_t) { return self(work).run(); };
      o.stream_wait = [](ciuic_work* work, const ciuic_stream*) { return self(work).run(); };
      o.on_done = [](ciuic_work* work, void (*callback)(void*, const ciuic_status*),
                     void* context) -> ciuic_status* {
        ciuic_status* status = self(work).run();
        callback(context, status);
        if (status != nullptr) {
          (void)self(work).host_.take(status);
        }
        return nullptr;
      };
      o.retain = [](ciuic_work* work) { ++self(work).references_; };
      o.release = [](ciuic_work* work) {
        if (--self(work).references_ == 0) {
          delete &self(work);
        }
      };
      return o;
    }();
    return ops;
  }

  Host host_;
  std::function<void()> body_;
  std::mutex mutex_;
  std::atomic<int> references_{1};
  bool is_done_ = false;
  std::optional<Error> error_;
};

}  // namespace ciuic::mutants::checkpoint
