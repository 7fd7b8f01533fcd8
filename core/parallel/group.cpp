// SPDX-License-Identifier: MIT
#include "core/parallel/group.h"

#include <utility>

#include <ciuic/view.hpp>

#include "core/bench/step_clock.h"
#include "core/plugin/array_problem.h"

namespace ciuic::core {
namespace {

Group& self(ciuic_instance* handle) { return *reinterpret_cast<Group*>(handle); }

/// The plugin's work with the wait timed. Ends the clock's interval when the inner work is done.
struct TimedWork : ciuic_work {
  TimedWork(ciuic_work* w, CommClock& c) : ciuic_work{&table()}, inner(w), clock(c) {}
  ~TimedWork() { inner->ops->release(inner); }

  static TimedWork* of(ciuic_work* w) { return static_cast<TimedWork*>(w); }
  static const ciuic_work_ops& table();

  ciuic_work* inner;
  CommClock& clock;
  std::atomic<int> references{2};  // the receiver's, and the completion callback's
};

void release_timed(ciuic_work* w) {
  if (TimedWork::of(w)->references.fetch_sub(1) == 1) {
    delete TimedWork::of(w);
  }
}

ciuic_status* wait_timed(ciuic_work* w, int64_t timeout_ns) {
  const auto begin = CommClock::Clock::now();
  const PartSpan part(Part::Communication);
  ciuic_work* inner = TimedWork::of(w)->inner;
  ciuic_status* status = inner->ops->wait(inner, timeout_ns);
  TimedWork::of(w)->clock.add_exposed(CommClock::Clock::now() - begin);
  return status;
}

const ciuic_work_ops& TimedWork::table() {
  static const ciuic_work_ops ops = [] {
    ciuic_work_ops o{};
    o.struct_size = sizeof(o);
    o.test = [](ciuic_work* w, int32_t* done) {
      return of(w)->inner->ops->test(of(w)->inner, done);
    };
    o.wait = &wait_timed;
    o.stream_wait = [](ciuic_work* w, const ciuic_stream* stream) {
      return of(w)->inner->ops->stream_wait(of(w)->inner, stream);
    };
    o.on_done = [](ciuic_work* w, void (*callback)(void*, const ciuic_status*), void* context) {
      return of(w)->inner->ops->on_done(of(w)->inner, callback, context);
    };
    o.retain = [](ciuic_work* w) { of(w)->references.fetch_add(1); };
    o.release = &release_timed;
    return o;
  }();
  return ops;
}

uint64_t group_bytes(ciuic_array collectives) {
  uint64_t bytes = 0;
  for (const ciuic_collective& c : ArrayView<ciuic_collective>(collectives)) {
    const ciuic_tensor* t = c.in != nullptr ? c.in : c.out;
    bytes += t == nullptr ? 0 : static_cast<uint64_t>(tensor_bytes(*t));
  }
  return bytes;
}

}  // namespace

Group::Group(std::string name, uint32_t id, std::shared_ptr<CommunicatorPlugin> plugin, int rank,
             std::vector<int32_t> ranks, CommClock& clock, Events& events)
    : name_(std::move(name)),
      plugin_(std::move(plugin)),
      ranks_(std::move(ranks)),
      nodes_(ranks_.size(), 0),
      clock_(clock),
      events_(events) {
  group_.struct_size = sizeof(group_);
  group_.id = id;
  group_.rank = rank;
  group_.size = static_cast<int32_t>(ranks_.size());
  group_.ranks = ranks_.data();
  group_.nodes = nodes_.data();
  group_.name = to_str(name_);
  const ciuic_communicator_vt& offered = plugin_->vt();
  group_.vt = CIUIC_CAN(&offered, memory_alloc) && CIUIC_CAN(&offered, memory_free)
                  ? &table_with_memory()
                  : &table();
  group_.self = reinterpret_cast<ciuic_instance*>(this);
}

std::unique_ptr<Group> Group::split(const ciuic_split& request, uint32_t id) const {
  std::vector<int32_t> ranks;
  int own = -1;
  for (uint32_t i = 0; i < request.count; ++i) {
    const int32_t r = request.ranks[i];
    if (r < 0 || r >= group_.size) {
      throw Failure(ExitCode::Plugin, "a split of group " + name_ + " names rank " +
                                          std::to_string(r) + ", which has ranks 0 to " +
                                          std::to_string(group_.size - 1));
    }
    own = r == group_.rank ? static_cast<int>(i) : own;
    ranks.push_back(ranks_[static_cast<size_t>(r)]);
  }
  std::shared_ptr<CommunicatorPlugin> child = plugin_->split(request);
  if (child == nullptr || own < 0) {
    return nullptr;
  }
  return std::make_unique<Group>(std::string(to_view(request.name)), id, std::move(child), own,
                                 std::move(ranks), clock_, events_);
}

ciuic_status* Group::submit(ciuic_instance* handle, ciuic_array collectives,
                            const ciuic_stream* stream, ciuic_work** work) {
  Group& g = self(handle);
  // Numbered here, so that reports of all ranks speak of the same collective by the same number.
  std::vector<ciuic_collective> numbered;
  *work = nullptr;
  if (const std::string problem = array_problem<ciuic_collective>(collectives, "submit: the array");
      !problem.empty()) {
    const ciuic_host* host = g.plugin_->instance().host();
    return host->status_new(host->ctx, CIUIC_INVALID, 0, -1, to_str(problem));
  }
  for (const ciuic_collective& c : ArrayView<ciuic_collective>(collectives)) {
    numbered.push_back(c);
    numbered.back().sequence = g.sequence_.fetch_add(1);
  }
  if (numbered.empty()) {
    const ciuic_host* host = g.plugin_->instance().host();
    return host->status_new(host->ctx, CIUIC_INVALID, 0, -1, to_str("submit without a collective"));
  }
  const auto& first = numbered.front();
  const Span span(g.events_, CIUIC_CATEGORY_COMMUNICATION, "submit", group_bytes(collectives),
                  first.op | uint64_t{g.group_.id} << 32);
  const auto begin = CommClock::Clock::now();
  const PartSpan part(Part::Communication);
  g.clock_.begin();
  ciuic_status* status =
      g.plugin_->vt().submit(g.plugin_->instance().self(), to_array(numbered), stream, work);
  if (status != nullptr || *work == nullptr) {
    g.clock_.end();
    g.clock_.add_exposed(CommClock::Clock::now() - begin);
    return status;
  }
  auto* timed = new TimedWork(*work, g.clock_);
  *work = timed;
  return timed->inner->ops->on_done(
      timed->inner,
      [](void* context, const ciuic_status*) {
        auto* w = static_cast<TimedWork*>(context);
        w->clock.end();
        release_timed(w);
      },
      timed);
}

const ciuic_communicator_vt& Group::table() {
  static const ciuic_communicator_vt vt = [] {
    ciuic_communicator_vt t{};
    t.struct_size = sizeof(t);
    t.capabilities = [](ciuic_instance* h, uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                        ciuic_device device, uint64_t* bits) {
      const CommunicatorPlugin& p = *self(h).plugin_;
      return p.vt().capabilities(p.instance().self(), op, reduce, dtype, device, bits);
    };
    t.submit = &Group::submit;
    t.split = [](ciuic_instance* h, const ciuic_split*, ciuic_instance**) {
      const ciuic_host* host = self(h).plugin_->instance().host();
      return host->status_new(host->ctx, CIUIC_UNIMPLEMENTED, 0, -1,
                              to_str("groups are split through the ciuic.comm service"));
    };
    t.health = [](ciuic_instance* h) {
      const CommunicatorPlugin& p = *self(h).plugin_;
      return p.vt().health(p.instance().self());
    };
    t.abort = [](ciuic_instance* h, int32_t code) { self(h).plugin_->abort(code); };
    return t;
  }();
  return vt;
}

const ciuic_communicator_vt& Group::table_with_memory() {
  static const ciuic_communicator_vt vt = [] {
    ciuic_communicator_vt t = table();
    t.memory_alloc = [](ciuic_instance* h, ciuic_device device, size_t bytes, uint32_t flags,
                        void** out) {
      const CommunicatorPlugin& p = *self(h).plugin_;
      return p.vt().memory_alloc(p.instance().self(), device, bytes, flags, out);
    };
    t.memory_free = [](ciuic_instance* h, void* memory, size_t bytes) {
      const CommunicatorPlugin& p = *self(h).plugin_;
      p.vt().memory_free(p.instance().self(), memory, bytes);
    };
    return t;
  }();
  return vt;
}

}  // namespace ciuic::core
