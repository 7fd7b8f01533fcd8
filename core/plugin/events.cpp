// SPDX-License-Identifier: MIT
#include "core/plugin/events.h"

#include <time.h>
#include <unistd.h>

#include <ciuic/host.hpp>
#include <ciuic/view.hpp>

namespace ciuic::core {
namespace {

uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

uint32_t thread_id() {
  thread_local const auto id = static_cast<uint32_t>(gettid());
  return id;
}

thread_local uint64_t open_span = 0;

}  // namespace

Events::Events() : service_(make_service(this)) {}

ciuic_metrics_service Events::make_service(Events* self) {
  ciuic_metrics_service s{};
  s.struct_size = sizeof(s);
  s.ctx = self;
  s.mask = [](void* ctx) { return static_cast<Events*>(ctx)->mask_.load(); };
  s.intern = [](void* ctx, ciuic_str name) {
    return static_cast<Events*>(ctx)->intern(to_view(name));
  };
  s.new_ids = [](void* ctx, uint32_t count) {
    return static_cast<Events*>(ctx)->next_id_.fetch_add(count);
  };
  s.emit = [](void* ctx, ciuic_array events) {
    for (const ciuic_event& e : ArrayView<ciuic_event>(events)) {
      static_cast<Events*>(ctx)->emit(e);
    }
  };
  s.set = [](void* ctx, ciuic_str name, ciuic_str, double value) {
    auto* me = static_cast<Events*>(ctx);
    const std::lock_guard lock(me->mutex_);
    me->fields_[std::string(to_view(name))] = value;
  };
  return s;
}

void Events::add_profiler(const Instance& profiler) {
  profilers_.push_back(&profiler);
  begin_step(0, 0);
}

void Events::remove_profilers() noexcept {
  mask_ = 0;
  profilers_.clear();
}

void Events::begin_step(uint64_t step, uint64_t attempt) {
  step_ = step;
  uint64_t mask = 0;
  for (const Instance* p : profilers_) {
    mask |= p->vt<ciuic_profiler_vt>().mask(p->self());
    p->check_escaped("profiler");  // emit has no status: what came out of it is said here
  }
  mask_ = mask;
  if (step != 0) {
    ciuic_event e{};
    e.struct_size = sizeof(e);
    e.type = CIUIC_EVENT_STEP;
    e.category = CIUIC_CATEGORY_STEP;
    e.a = step;
    e.b = attempt;
    e.name = to_str("step");
    emit(e);
  }
}

void Events::emit(const ciuic_event& event) noexcept {
  if (!wants(event.category)) {
    return;
  }
  ciuic_event e = event;
  e.time_ns = e.time_ns == 0 ? now_ns() : e.time_ns;
  e.thread = e.thread == 0 ? thread_id() : e.thread;
  e.parent = e.parent == 0 ? open_span : e.parent;
  const ciuic_array one{&e, 1, sizeof(e)};
  for (const Instance* p : profilers_) {
    const auto& vt = p->vt<ciuic_profiler_vt>();
    if ((vt.mask(p->self()) >> e.category & 1) != 0) {
      vt.emit(p->self(), one);
    }
  }
}

void Events::flush(int64_t timeout_ns) noexcept {
  for (const Instance* p : profilers_) {
    if (ciuic_status* status = p->vt<ciuic_profiler_vt>().flush(p->self(), timeout_ns)) {
      const Host host(p->host());
      host.warn(std::string("flush: ") + host.take(status).what());
    }
  }
}

ciuic_str Events::intern(std::string_view name) {
  const std::lock_guard lock(mutex_);
  return to_str(*names_.emplace(name).first);
}

std::map<std::string, double> Events::take_fields() {
  const std::lock_guard lock(mutex_);
  return std::exchange(fields_, {});
}

Span::Span(Events& events, uint32_t category, std::string_view name, uint64_t a, uint64_t b)
    : events_(events) {
  if (!events.wants(category)) {
    return;
  }
  event_.struct_size = sizeof(event_);
  event_.type = CIUIC_EVENT_BEGIN;
  event_.category = category;
  event_.id = events.new_id();
  event_.parent = open_span;
  event_.a = a;
  event_.b = b;
  event_.name = events.intern(name);
  events.emit(event_);
  open_span = event_.id;
}

Span::~Span() {
  if (event_.id != 0) {
    open_span = event_.parent;
    event_.type = CIUIC_EVENT_END;
    event_.time_ns = 0;
    events_.emit(event_);
  }
}

}  // namespace ciuic::core
